"""The strategies of features in their environments (the real server's …/strategies; import validation 6.3, step 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import Row, delete, func, insert, select, update

from flagsvc.http.shapes.text import number_text
from flagsvc.server.store.checks import (
    Json,
    check_segment_count,
    default_strategy,
    fill_parameters,
    invalid,
    make_detail,
    prepare_variants,
)
from flagsvc.server.store.constraints import MAX_SAFE_INTEGER, check_constraints, check_limits, limit_exceeded
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.legal_values import read_legal_values
from flagsvc.server.store.patch import apply_patch
from flagsvc.server.store.resources.features import find, require
from flagsvc.server.store.schema import (
    environments,
    feature_environments,
    projects,
    segments,
    strategies,
    strategy_segments,
    strategy_types,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks

MAX_STRATEGIES = 30
ORDER = (strategies.c.sort_order, strategies.c.position)
NOT_CHANGEABLE = "You can not change the {} for an activation strategy."


class StrategyPlace(NamedTuple):
    """The place of a strategy; `project` is the project of the feature."""

    project: str
    feature: str
    environment: str

    def record_event(self, tx: Tx, kind: str, *, before: Any = None, data: Any = None) -> None:
        """Record an event of this place."""
        here = {"project": self.project, "environment": self.environment, "feature": self.feature}
        tx.record_event(kind, **here, before=before, data=data)


def as_integer_if_whole(number: float) -> float:
    """Return a number as an integer if it has no fraction."""
    return int(number) if isfinite(number) and number == int(number) else number


def to_json(row: Row[Any], used: Sequence[int]) -> Json:
    """Return a strategy as the API answers it; `used` are its segments."""
    return {
        "id": row.id,
        "name": row.name,
        "constraints": row.constraints,
        "parameters": row.parameters,
        "variants": row.variants,
        "segments": list(used),
        "title": row.title,
        "disabled": row.disabled,
        "sortOrder": as_integer_if_whole(row.sort_order),
    }


def whole_strategy(row: Row[Any], used: Sequence[int]) -> Json:
    """Return a strategy as events hold it, with its place among those of the same sort order."""
    return to_json(row, used) | {"position": row.position}


def read_whole(tx: Tx, strategy: str) -> Json:
    """Return a strategy as events hold it. Raises CallerError (404)."""
    return whole_strategy(_find(tx, strategy, ": "), segments_of(tx, [strategy]).get(strategy, ()))


def segments_of(tx: Tx, ids: Iterable[str]) -> dict[str, list[int]]:
    """Return the segments of strategies, in order, by strategy."""
    found: dict[str, list[int]] = defaultdict(list)
    uses = strategy_segments.c
    for chunk in chunks(ids):
        query = select(uses.strategy_id, uses.segment_id).where(uses.strategy_id.in_(chunk))
        for strategy, segment in tx.db.execute(query.order_by(uses.position, uses.segment_id)):
            found[strategy].append(segment)
    return found


def list_rows(tx: Tx, feature: str, environment: str) -> Sequence[Row[Any]]:
    """Return the rows of a feature's strategies in an environment, in order."""
    query = select(strategies).where(strategies.c.feature == feature, strategies.c.environment == environment)
    return tx.db.execute(query.order_by(*ORDER)).all()


def rows_by_environment(tx: Tx, feature: str) -> dict[str, list[Row[Any]]]:
    """Return the rows of a feature's strategies, in order, by environment."""
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in tx.db.execute(select(strategies).where(strategies.c.feature == feature).order_by(*ORDER)):
        found[row.environment].append(row)
    return found


def list_all(tx: Tx, feature: str, environment: str) -> list[Json]:
    """Return the strategies of a feature in an environment, in order. Raises CallerError (404)."""
    condition = select(feature_environments.c.feature).where(
        feature_environments.c.feature == feature, feature_environments.c.environment == environment
    )
    if tx.db.execute(condition).first() is None:
        raise not_found(f"Feature {feature} does not have environment {environment}")
    rows = list_rows(tx, feature, environment)
    used = segments_of(tx, (row.id for row in rows))
    return [to_json(row, used.get(row.id, ())) | {"milestoneId": None} for row in rows]


def get(tx: Tx, strategy: str) -> Json:
    """Return a strategy. Raises CallerError (404)."""
    return _to_json(tx, _find(tx, strategy, ": "))


def _find(tx: Tx, strategy: str, mark: str) -> Row[Any]:
    """Return a strategy's row. `mark` stands before the id in the message: the real server has two forms."""
    row = tx.db.execute(select(strategies).where(strategies.c.id == strategy)).first()
    if row is None:
        raise not_found(f"Could not find strategy with id{mark}{strategy}")
    return row


def _find_in(tx: Tx, place: StrategyPlace, strategy: str) -> Row[Any]:
    """Return the row of a strategy to change. Raises CallerError (403, 404) if it is in another place.

    The real server does not check the environment, so there a permission for one environment allows changes in all.
    """
    row = _find(tx, strategy, "=")
    owner = find(tx, row.feature)
    if owner is None or owner.project != place.project:
        raise CallerError("InvalidOperationError", NOT_CHANGEABLE.format("projectId"))
    if row.feature != place.feature:
        raise CallerError("InvalidOperationError", NOT_CHANGEABLE.format("featureName"))
    if row.environment != place.environment:
        raise not_found(f"Could not find strategy with id={strategy}")
    return row


def _to_json(tx: Tx, row: Row[Any]) -> Json:
    return to_json(row, segments_of(tx, [row.id]).get(row.id, ()))


def create(tx: Tx, place: StrategyPlace, wanted: Mapping[str, Any]) -> Json:
    """Add a strategy to a feature in an environment, and return it. Raises CallerError (400, 404)."""
    require(tx, place.project, place.feature)
    _check_type(tx, wanted["name"])
    used = _checked_segments(tx, place.project, wanted.get("segments") or [])
    values = _checked_columns(tx, place, wanted, before=[])
    if tx.db.execute(select(environments.c.name).where(environments.c.name == place.environment)).first() is None:
        raise bad_data("You have not added the current environment to the project")
    count, last = _count_and_last_order(tx, place)
    if count >= MAX_STRATEGIES:
        raise limit_exceeded("strategy", MAX_STRATEGIES)
    row = values | {
        "id": str(uuid4()),
        "feature": place.feature,
        "environment": place.environment,
        "name": wanted["name"],
        "title": wanted.get("title"),
        "disabled": bool(wanted.get("disabled")),
        "sort_order": read_sort_order(wanted, last + 1),
        "created_at": tx.now,
        "position": tx.positions(strategies)[0],
    }
    tx.db.execute(insert(strategies).values(row))
    _set_segments(tx, row["id"], used)
    place.record_event(tx, "feature-strategy-add", data=read_whole(tx, row["id"]))
    return get(tx, row["id"])


def _count_and_last_order(tx: Tx, place: StrategyPlace) -> tuple[int, float]:
    """Return the number of a feature's strategies in an environment and their highest sort order; -1 without any."""
    query = select(func.count(), func.coalesce(func.max(strategies.c.sort_order), -1)).where(
        strategies.c.feature == place.feature, strategies.c.environment == place.environment
    )
    count, last = tx.db.execute(query).one()
    return count, last


def read_sort_order(wanted: Mapping[str, Any], default: float) -> float:
    """Return the sort order of a request, or `default`. Raises CallerError (400) for an infinite one."""
    given: float | None = wanted.get("sortOrder")
    order = default if given is None else given
    if not isfinite(order):
        raise invalid(make_detail('"sortOrder" must be a safe number', number_text(order)))
    return order


def _check_type(tx: Tx, name: str) -> None:
    if tx.db.execute(select(strategy_types.c.name).where(strategy_types.c.name == name)).first() is None:
        raise bad_data(f"Could not find strategy type with name {name}")


def _checked_columns(
    tx: Tx, place: StrategyPlace, wanted: Mapping[str, Any], *, before: Sequence[Json]
) -> dict[str, Any]:
    """Return the checked columns for constraints, parameters and variants."""
    constraints = wanted.get("constraints") or []
    check_limits(constraints, before)
    checked = check_constraints(constraints, read_legal_values(tx, (each["contextName"] for each in constraints)))
    stickiness = tx.db.execute(select(projects.c.default_stickiness).where(projects.c.id == place.project)).scalar()
    return {
        "constraints": checked,
        "parameters": fill_parameters(
            wanted.get("name"), wanted.get("parameters"), place.feature, stickiness or "default"
        ),
        "variants": prepare_variants(wanted.get("variants") or []),
    }


def _checked_segments(tx: Tx, project: str, wanted: Sequence[float]) -> list[int]:
    """Return the segments for a strategy.

    Raises CallerError for unknown ones (404), for those of another project and for too many (400).
    """
    known: dict[float, Row[Any]] = {}
    for chunk in chunks(
        {int(number) for number in wanted if abs(number) <= MAX_SAFE_INTEGER and number == int(number)}
    ):
        rows = tx.db.execute(select(segments.c.id, segments.c.name, segments.c.project).where(segments.c.id.in_(chunk)))
        known |= {row.id: row for row in rows}
    for number in wanted:
        if number not in known:
            raise not_found(f'No segment exists with ID "{number_text(number)}"')
    others = [known[number] for number in wanted if known[number].project not in (None, project)]
    if others:
        named = ",".join(f"{row.name} with id {row.id}" for row in others)
        raise bad_data(f'The segments {named} does not belong to project "{project}"')
    check_segment_count(wanted)
    return list(dict.fromkeys(int(number) for number in wanted))


def _set_segments(tx: Tx, strategy: str, used: Sequence[int]) -> None:
    """Replace the segments of a strategy."""
    tx.db.execute(delete(strategy_segments).where(strategy_segments.c.strategy_id == strategy))
    rows = [{"strategy_id": strategy, "segment_id": each, "position": place} for place, each in enumerate(used)]
    if rows:
        tx.db.execute(insert(strategy_segments), rows)


def change(tx: Tx, place: StrategyPlace, strategy: str, wanted: Mapping[str, Any]) -> Json:
    """Change a strategy and return it. A feature without another active one in the environment is switched off.

    Absent constraints, parameters and variants are removed; absent title, name, state and segments stay. Raises CallerError.
    """
    row = _find_in(tx, place, strategy)
    before = read_whole(tx, strategy)
    if wanted.get("name") is not None:
        _check_type(tx, wanted["name"])
    used = _checked_segments(tx, place.project, wanted.get("segments") or [])
    values = _checked_columns(tx, place, wanted, before=row.constraints)
    kept = {name: wanted[name] for name in ("name", "title", "disabled") if wanted.get(name) is not None}
    tx.db.execute(update(strategies).where(strategies.c.id == strategy).values(values | kept))
    if wanted.get("segments") is not None:
        _set_segments(tx, strategy, used)
    record_change(tx, place, strategy, before)
    switch_off_without_strategies(tx, place)
    return get(tx, strategy)


def record_change(tx: Tx, place: StrategyPlace, strategy: str, before: Json) -> None:
    """Record how a strategy changed."""
    place.record_event(tx, "feature-strategy-update", before=before, data=read_whole(tx, strategy))


def find_whole(tx: Tx, strategy: str) -> Json | None:
    """Return a strategy as events hold it; None for one that is not there."""
    row = tx.db.execute(select(strategies).where(strategies.c.id == strategy)).first()
    return None if row is None else read_whole(tx, strategy)


def put_back(tx: Tx, place: StrategyPlace, whole: Mapping[str, Any]) -> None:
    """Make a strategy what an event holds: it is changed, or added with its id and place. Raises CallerError (400, 403, 404)."""
    require(tx, place.project, place.feature)
    _check_type(tx, whole["name"])
    there = find_whole(tx, whole["id"])
    if there is None:
        if len(list_rows(tx, place.feature, place.environment)) >= MAX_STRATEGIES:
            raise limit_exceeded("strategy", MAX_STRATEGIES)
        insert_whole(tx, place, whole)
        place.record_event(tx, "feature-strategy-add", data=read_whole(tx, whole["id"]))
    else:
        used = _checked_segments(tx, place.project, whole["segments"])
        _find_in(tx, place, whole["id"])
        tx.db.execute(update(strategies).where(strategies.c.id == whole["id"]).values(_whole_columns(whole)))
        _set_segments(tx, whole["id"], used)
        record_change(tx, place, whole["id"], there)


def insert_whole(tx: Tx, place: StrategyPlace, whole: Mapping[str, Any]) -> None:
    """Insert a strategy as an event holds it, without an event. Raises CallerError (400, 404) for its segments."""
    used = _checked_segments(tx, place.project, whole["segments"])
    here = {"feature": place.feature, "environment": place.environment, "created_at": tx.now}
    tx.db.execute(insert(strategies).values(_whole_columns(whole) | here | {"id": whole["id"]}))
    _set_segments(tx, whole["id"], used)


def _whole_columns(whole: Mapping[str, Any]) -> Json:
    names = ("name", "title", "disabled", "constraints", "parameters", "variants", "position")
    return {name: whole[name] for name in names} | {"sort_order": whole["sortOrder"]}


def preview_patch(tx: Tx, strategy: str, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Return a strategy after a JSON Patch, without a check of its shape; store nothing. Raises CallerError (400, 404)."""
    return apply_patch(get(tx, strategy), operations)


def remove(tx: Tx, place: StrategyPlace, strategy: str, *, keep_state: bool = False) -> None:
    """Delete a strategy. A feature without another active one is switched off, except with `keep_state`.

    Raises CallerError (403, 404).
    """
    _find_in(tx, place, strategy)
    before = read_whole(tx, strategy)
    tx.db.execute(delete(strategies).where(strategies.c.id == strategy))
    if not keep_state:
        switch_off_without_strategies(tx, place)
    place.record_event(tx, "feature-strategy-remove", before=before)


def sort(tx: Tx, place: StrategyPlace, orders: Sequence[Mapping[str, Any]]) -> None:
    """Set the sort order of a feature's strategies in an environment; unknown ones are ignored. Raises CallerError (400, 404)."""
    list_all(tx, place.feature, place.environment)
    require(tx, place.project, place.feature)
    here = strategies.c.feature == place.feature, strategies.c.environment == place.environment
    before = order_of(tx, place)
    wanted = {each["id"]: read_sort_order(each, 0) for each in orders}
    for strategy in before["sortOrders"].keys() & wanted.keys():
        changed = update(strategies).where(strategies.c.id == strategy, *here)
        tx.db.execute(changed.values(sort_order=wanted[strategy]))
    place.record_event(tx, "strategy-order-changed", before=before, data=order_of(tx, place))


def order_of(tx: Tx, place: StrategyPlace) -> Json:
    """Return the order of a feature's strategies in an environment, as events hold it."""
    rows = list_rows(tx, place.feature, place.environment)
    orders = {row.id: as_integer_if_whole(row.sort_order) for row in rows}
    return {"strategyIds": list(orders), "sortOrders": orders}


def switch_off_without_strategies(tx: Tx, place: StrategyPlace) -> None:
    """Switch a feature off in an environment where it has no active strategy."""
    if all(row.disabled for row in list_rows(tx, place.feature, place.environment)):
        set_state(tx, place, enabled=False)


def set_state(tx: Tx, place: StrategyPlace, *, enabled: bool) -> None:
    """Switch a feature on or off in an environment, without a look at its strategies."""
    state = feature_environments
    here = state.c.feature == place.feature, state.c.environment == place.environment
    if tx.db.execute(update(state).where(*here, state.c.enabled != enabled).values(enabled=enabled)).rowcount:
        kind = "feature-environment-enabled" if enabled else "feature-environment-disabled"
        place.record_event(tx, kind, before={"enabled": not enabled}, data={"enabled": enabled})


def ensure_active(tx: Tx, place: StrategyPlace, *, activate: bool) -> None:
    """Add the default strategy to a feature without an active one; with `activate`, enable its strategies instead."""
    rows = list_rows(tx, place.feature, place.environment)
    if activate and any(row.disabled for row in rows):
        for row in rows:
            before = read_whole(tx, row.id)
            tx.db.execute(update(strategies).where(strategies.c.id == row.id).values(disabled=False))
            record_change(tx, place, row.id, before)
    elif all(row.disabled for row in rows):
        create(tx, place, default_strategy(place.feature))
