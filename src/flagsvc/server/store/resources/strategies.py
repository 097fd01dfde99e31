"""The strategies of features in their environments (the real server's …/strategies; import validation 6.3, step 7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import ColumnElement, Row, bindparam, delete, func, insert, select, update

from flagsvc.http.shapes.text import number_text
from flagsvc.server.store.checks import (
    Json,
    check_segment_count,
    fill_parameters,
    invalid,
    make_detail,
    prepare_variants,
)
from flagsvc.server.store.constraints import MAX_SAFE_INTEGER, check_constraints, check_limits, limit_exceeded
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.members import columns_of
from flagsvc.server.store.patch import apply_patch
from flagsvc.server.store.resources.features import find, find_all, no_feature, require
from flagsvc.server.store.schema import (
    context_fields,
    environments,
    feature_environments,
    features,
    projects,
    segments,
    strategies,
    strategy_segments,
    strategy_types,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks, rows_in

MAX_STRATEGIES = 30
ORDER = (strategies.c.sort_order, strategies.c.position)
MEMBERS = ("name", "title", "disabled", "constraints", "parameters", "variants", "position", "sortOrder")
"""The members of a strategy that a change sets."""
NOT_CHANGEABLE = "You can not change the {} for an activation strategy."


class StrategyPlace(NamedTuple):
    """The place of a strategy; `project` is the project of the feature."""

    project: str
    feature: str
    environment: str

    def record_event(self, tx: Tx, kind: str, *, before: Any = None, data: Any = None) -> None:
        here = {"project": self.project, "environment": self.environment, "feature": self.feature}
        tx.record_event(kind, **here, before=before, data=data)


class Placed(NamedTuple):
    """A strategy as events hold it, and its place."""

    place: StrategyPlace
    whole: Mapping[str, Any]


def as_integer_if_whole(number: float) -> float:
    return int(number) if isfinite(number) and number == int(number) else number


def to_json(row: Row[Any], used: Sequence[int]) -> Json:
    """Return a strategy as the API answers it; `used` are its segments. An export calls this for thousands of rows."""
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


def read_all_whole(tx: Tx, ids: Iterable[str]) -> dict[str, Json]:
    """Return the strategies of these ids that there are as events hold them, by id."""
    return {row.id: whole for row, whole in wholes_in(tx, strategies.c.id, ids)}


def wholes_of(tx: Tx, names: Iterable[str], *conditions: ColumnElement[bool]) -> Iterator[tuple[Row[Any], Json]]:
    """Yield the strategies of features, as rows and as events hold them, in order within a feature and an environment."""
    yield from wholes_in(tx, strategies.c.feature, names, *conditions)


def wholes_in(
    tx: Tx, column: ColumnElement[Any], values: Iterable[str], *conditions: ColumnElement[bool]
) -> Iterator[tuple[Row[Any], Json]]:
    """Yield the strategies in which a column has one of these values, as rows and as events hold them, in ORDER."""
    for chunk in chunks(dict.fromkeys(values)):
        query = select(strategies).where(column.in_(chunk), *conditions).order_by(*ORDER)
        rows = tx.db.execute(query).all()
        used = segments_of(tx, (row.id for row in rows))
        yield from ((row, whole_strategy(row, used.get(row.id, ()))) for row in rows)


def segments_of(tx: Tx, ids: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    uses = strategy_segments.c
    query = select(uses.strategy_id, uses.segment_id).order_by(uses.position, uses.segment_id)
    for strategy, segment in rows_in(tx, query, uses.strategy_id, ids):
        found[strategy].append(segment)
    return found


def list_rows(tx: Tx, feature: str, environment: str) -> Sequence[Row[Any]]:
    """Return the rows of a feature's strategies in an environment, in order."""
    return rows_by_feature(tx, environment, [feature])[feature]


def rows_by_feature(tx: Tx, environment: str, names: Iterable[str]) -> dict[str, list[Row[Any]]]:
    """Return the rows of the strategies of features in an environment, in order, by feature; without any, they are a new list."""
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    query = select(strategies).where(strategies.c.environment == environment).order_by(*ORDER)
    for row in rows_in(tx, query, strategies.c.feature, names):
        found[row.feature].append(row)
    return found


def rows_by_environment(tx: Tx, feature: str) -> dict[str, list[Row[Any]]]:
    """Return the rows of a feature's strategies, in order, by environment."""
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in tx.db.execute(select(strategies).where(strategies.c.feature == feature).order_by(*ORDER)):
        found[row.environment].append(row)
    return found


def list_all(tx: Tx, feature: str, environment: str, project: str | None = None) -> list[Json]:
    """Return the strategies of a feature in an environment, in order; none if it is not in `project`. Raises CallerError (404)."""
    condition = (
        select(features.c.project)
        .join(feature_environments, feature_environments.c.feature == features.c.name)
        .where(features.c.name == feature, feature_environments.c.environment == environment)
    )
    found = tx.db.execute(condition).first()
    if found is None:
        raise not_found(f"Feature {feature} does not have environment {environment}")
    rows = list_rows(tx, feature, environment) if project in (None, found.project) else []
    used = segments_of(tx, (row.id for row in rows))
    return [to_json(row, used.get(row.id, ())) | {"milestoneId": None} for row in rows]


def get(tx: Tx, strategy: str) -> Json:
    """Return a strategy. Raises CallerError (404)."""
    return to_json(_find(tx, strategy, ": "), segments_of(tx, [strategy]).get(strategy, ()))


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


def create(tx: Tx, place: StrategyPlace, wanted: Mapping[str, Any]) -> Json:
    """Add a strategy to a feature in an environment, and return it. Raises CallerError (400, 404)."""
    require(tx, place.project, place.feature)
    check_type(tx, wanted["name"])
    used = checked_segments(tx, place.project, wanted.get("segments") or [])
    columns = _checked_columns(tx, place, wanted, before=[])
    if tx.db.execute(select(environments.c.name).where(environments.c.name == place.environment)).first() is None:
        raise bad_data("You have not added the current environment to the project")
    count, last = _count_and_last_order(tx, place)
    if count >= MAX_STRATEGIES:
        raise limit_exceeded("strategy", MAX_STRATEGIES)
    whole = new_whole(wanted, columns, used, order=read_sort_order(wanted, last + 1), position=tx.positions(strategies)[0])
    add(tx, [Placed(place, whole)])
    return get(tx, whole["id"])


def new_whole(wanted: Mapping[str, Any], columns: Json, used: Sequence[int], *, order: float, position: int) -> Json:
    """Return a new strategy as events hold it. `columns` are its checked constraints, parameters and variants."""
    return {
        "id": str(uuid4()),
        "name": wanted["name"],
        **columns,
        "segments": list(used),
        "title": wanted.get("title"),
        "disabled": bool(wanted.get("disabled")),
        "sortOrder": as_integer_if_whole(order),
        "position": position,
    }


def add(tx: Tx, wanted: Sequence[Placed]) -> None:
    """Insert strategies as events hold them."""
    insert_all(tx, wanted)
    for place, whole in wanted:
        place.record_event(tx, "feature-strategy-add", data=whole)


def insert_all(tx: Tx, wanted: Sequence[Placed]) -> None:
    """Insert strategies as events hold them, and record nothing."""
    rows = [
        columns_of(whole, ("id", *MEMBERS)) | {"feature": place.feature, "environment": place.environment, "created_at": tx.now}
        for place, whole in wanted
    ]
    if rows:
        tx.db.execute(insert(strategies), rows)
    set_segments(tx, {whole["id"]: whole["segments"] for _, whole in wanted if whole["segments"]})


def remove_all(tx: Tx, gone: Sequence[Placed]) -> None:
    """Delete strategies that are as they are given. Features stay on, also without an active strategy."""
    for chunk in chunks(each.whole["id"] for each in gone):
        tx.db.execute(delete(strategies).where(strategies.c.id.in_(chunk)))
    for place, whole in gone:
        place.record_event(tx, "feature-strategy-remove", before=whole)


def put(tx: Tx, wanted: Sequence[Placed]) -> None:
    """Make strategies what events hold: each is changed, or added with its id and place. Raises CallerError (400, 404)."""
    owners = {row.name: row.project for row in find_all(tx, [each.place.feature for each in wanted])}
    for place, _ in wanted:
        if owners.get(place.feature) != place.project:
            raise no_feature(place.feature, place.project, owners.get(place.feature))
    for name in dict.fromkeys(each.whole["name"] for each in wanted):
        check_type(tx, name)
    ids = [each.whole["id"] for each in wanted]
    before = read_all_whole(tx, ids)
    new = [each for each in wanted if each.whole["id"] not in before]
    _check_counts(tx, new)
    check_segments(tx, wanted)
    insert_all(tx, new)
    _update(tx, [each for each in wanted if each.whole["id"] in before])
    after = read_all_whole(tx, ids)
    for place, whole in wanted:
        there = before.get(whole["id"])
        kind = "feature-strategy-add" if there is None else "feature-strategy-update"
        place.record_event(tx, kind, before=there, data=after[whole["id"]])


def _check_counts(tx: Tx, new: Sequence[Placed]) -> None:
    """Raise CallerError (400) where a feature would have too many strategies."""
    counts = Counter(each.place for each in new)
    for environment in dict.fromkeys(place.environment for place in counts):
        here = [place for place in counts if place.environment == environment]
        held = rows_by_feature(tx, environment, [place.feature for place in here])
        if any(len(held[place.feature]) + counts[place] > MAX_STRATEGIES for place in here):
            raise limit_exceeded("strategy", MAX_STRATEGIES)


def _update(tx: Tx, wanted: Sequence[Placed]) -> None:
    rows = [columns_of(whole, MEMBERS) | {"which": whole["id"]} for _, whole in wanted]
    if rows:
        names: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "which"}
        tx.db.execute(update(strategies).where(strategies.c.id == bindparam("which")).values(names), rows)
    set_segments(tx, {whole["id"]: whole["segments"] for _, whole in wanted})


def check_segments(tx: Tx, wanted: Iterable[Placed]) -> None:
    """Raise CallerError for segments that strategies cannot use (400, 404). Those that several strategies use are read once."""
    for project, numbers in dict.fromkeys((place.project, tuple(whole["segments"])) for place, whole in wanted):
        checked_segments(tx, project, numbers)


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


def check_type(tx: Tx, name: str) -> None:
    """Raise CallerError (400) for a type of strategies that does not exist."""
    if tx.db.execute(select(strategy_types.c.name).where(strategy_types.c.name == name)).first() is None:
        raise bad_data(f"Could not find strategy type with name {name}")


def _checked_columns(tx: Tx, place: StrategyPlace, wanted: Mapping[str, Any], *, before: Sequence[Json]) -> dict[str, Any]:
    constraints = wanted.get("constraints") or []
    check_limits(constraints, before)
    checked = check_constraints(constraints, read_legal_values(tx, (each["contextName"] for each in constraints)))
    stickiness = tx.db.execute(select(projects.c.default_stickiness).where(projects.c.id == place.project)).scalar()
    return {
        "constraints": checked,
        "parameters": fill_parameters(wanted.get("name"), wanted.get("parameters"), place.feature, stickiness or "default"),
        "variants": prepare_variants(wanted.get("variants") or []),
    }


def read_legal_values(tx: Tx, names: Iterable[str]) -> dict[str, dict[str, None]]:
    """Return the legal values, in order, of the context fields of these names that have any. Looking one up takes no search."""
    query = select(context_fields.c.name, context_fields.c.legal_values)
    rows = rows_in(tx, query, context_fields.c.name, names)
    return {name: dict.fromkeys(each["value"] for each in values) for name, values in rows if values}


def checked_segments(tx: Tx, project: str, wanted: Sequence[float]) -> list[int]:
    """Return the segments for a strategy.

    Raises CallerError for unknown ones (404), for those of another project and for too many (400).
    """
    numbers = {int(number) for number in wanted if abs(number) <= MAX_SAFE_INTEGER and number == int(number)}
    query = select(segments.c.id, segments.c.name, segments.c.project)
    known: dict[float, Row[Any]] = {row.id: row for row in rows_in(tx, query, segments.c.id, numbers)}
    for number in wanted:
        if number not in known:
            raise not_found(f'No segment exists with ID "{number_text(number)}"')
    others = [known[number] for number in wanted if known[number].project not in (None, project)]
    if others:
        named = ",".join(f"{row.name} with id {row.id}" for row in others)
        raise bad_data(f'The segments {named} does not belong to project "{project}"')
    check_segment_count(wanted)
    return list(dict.fromkeys(int(number) for number in wanted))


def set_segments(tx: Tx, used: Mapping[str, Sequence[int]]) -> None:
    """Replace the segments of strategies. The order of the segments counts."""
    for chunk in chunks(used):
        tx.db.execute(delete(strategy_segments).where(strategy_segments.c.strategy_id.in_(chunk)))
    rows = [
        {"strategy_id": strategy, "segment_id": segment, "position": place}
        for strategy, ids in used.items()
        for place, segment in enumerate(dict.fromkeys(ids))
    ]
    if rows:
        tx.db.execute(insert(strategy_segments), rows)


def change(tx: Tx, place: StrategyPlace, strategy: str, wanted: Mapping[str, Any]) -> Json:
    """Change a strategy and return it. A feature without another active one in the environment is switched off.

    Absent constraints, parameters and variants are removed; absent title, name, state and segments stay. Raises CallerError.
    """
    row = _find_in(tx, place, strategy)
    before = read_whole(tx, strategy)
    if wanted.get("name") is not None:
        check_type(tx, wanted["name"])
    used = checked_segments(tx, place.project, wanted.get("segments") or [])
    values = _checked_columns(tx, place, wanted, before=row.constraints)
    kept = {name: wanted[name] for name in ("name", "title", "disabled") if wanted.get(name) is not None}
    tx.db.execute(update(strategies).where(strategies.c.id == strategy).values(values | kept))
    if wanted.get("segments") is not None:
        set_segments(tx, {strategy: used})
    record_change(tx, place, strategy, before)
    switch_off_without_strategies(tx, place)
    return get(tx, strategy)


def record_change(tx: Tx, place: StrategyPlace, strategy: str, before: Json) -> None:
    place.record_event(tx, "feature-strategy-update", before=before, data=read_whole(tx, strategy))


def preview_patch(tx: Tx, strategy: str, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Return a strategy after a JSON Patch, without a check of its shape; store nothing. Raises CallerError (400, 404)."""
    return apply_patch(get(tx, strategy), operations)


def remove(tx: Tx, place: StrategyPlace, strategy: str) -> None:
    """Delete a strategy. A feature without another active one is switched off. Raises CallerError (403, 404)."""
    _find_in(tx, place, strategy)
    before = read_whole(tx, strategy)
    tx.db.execute(delete(strategies).where(strategies.c.id == strategy))
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
        record_state(tx, place, enabled=enabled)


def record_state(tx: Tx, place: StrategyPlace, *, enabled: bool) -> None:
    """Record that a feature was switched on or off in an environment."""
    kind = "feature-environment-enabled" if enabled else "feature-environment-disabled"
    place.record_event(tx, kind, before={"enabled": not enabled}, data={"enabled": enabled})
