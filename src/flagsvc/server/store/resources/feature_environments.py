"""Features in environments: their state and variants (the real server's …/environments; import validation 6.3, steps 2 and 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, bindparam, select, update

from flagsvc.server.store.checks import VARIABLE, Json, default_strategy, prepare_variants
from flagsvc.server.store.constraints import limit_exceeded
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.members import shown
from flagsvc.server.store.patch import apply_patch
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.features import find_all, no_feature, require
from flagsvc.server.store.resources.strategies import Placed, StrategyPlace
from flagsvc.server.store.schema import feature_environments as states
from flagsvc.server.store.schema import strategies as strategies_table
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks, rows_in


class FeatureState(NamedTuple):
    """A feature in an environment: whether it is on, and its variants."""

    enabled: bool
    variants: list[Json]


def read_states(tx: Tx, environment: str, names: Iterable[str]) -> dict[str, FeatureState]:
    query = select(states.c.feature, states.c.enabled, states.c.variants).where(states.c.environment == environment)
    return {row.feature: FeatureState(row.enabled, row.variants or []) for row in rows_in(tx, query, states.c.feature, names)}


def update_states(tx: Tx, environment: str, column: str, values: Mapping[str, Any]) -> None:
    """Set a column of features in an environment; `values` is by feature."""
    if not values:
        return
    which = states.c.feature == bindparam("which"), states.c.environment == environment
    statement = update(states).where(*which).values({column: bindparam("value")})
    tx.db.execute(statement, [{"which": name, "value": value} for name, value in values.items()])


def find_state(tx: Tx, place: StrategyPlace) -> Row[Any] | None:
    """Return the row of a feature in an environment; None without one."""
    here = states.c.feature == place.feature, states.c.environment == place.environment
    return tx.db.execute(select(states).where(*here)).first()


def require_state(tx: Tx, place: StrategyPlace) -> Row[Any]:
    """Return the row of a feature in an environment. Raises CallerError (404)."""
    row = find_state(tx, place)
    if row is None:
        raise not_found(f"Could not find {place.feature} in {place.environment}")
    return row


def get(tx: Tx, place: StrategyPlace) -> Json:
    """Return whether a feature is on in an environment, and its strategies there. Raises CallerError (404)."""
    require(tx, place.project, place.feature)
    state = require_state(tx, place)
    listed_strategies = [
        {"id": row.id, "featureName": row.feature}
        | shown(row, "title", "parameters", "constraints", "variants")
        | {"sortOrder": strategies.as_integer_if_whole(row.sort_order)}
        | shown(row, "disabled", "name")
        for row in strategies.list_rows(tx, place.feature, place.environment)
    ]
    return {
        "name": place.feature,
        "environment": place.environment,
        "enabled": state.enabled,
        "strategies": listed_strategies,
    }


def switch(tx: Tx, project: str, environment: str, names: Sequence[str], *, enabled: bool, activate: bool = False) -> None:
    """Switch features on or off in an environment; switching on adds the default strategy where none is active (6.3, 8).

    With `activate`, disabled strategies are enabled instead. All features are read and written together.
    Raises CallerError (400 for an archived feature or too many strategies, 404).
    """
    activate = activate and enabled
    rows = {row.name: row for row in find_all(tx, names)}
    before = read_states(tx, environment, names)
    held = strategies.rows_by_feature(tx, environment, names if enabled else ())
    used = strategies.segments_of(tx, (row.id for each in held.values() for row in each) if activate else ())
    first, new = tx.positions(strategies_table)[0], list[Placed]()
    for name in names:
        place = StrategyPlace(project, name, environment)
        _check_switch(place, rows.get(name), before)
        if activate and any(row.disabled for row in held[name]):
            _record_activation(tx, place, held[name], used)
        elif enabled and all(row.disabled for row in held[name]):
            new.append(_default_strategy(tx, place, held[name], first + len(new)))
        if before[name].enabled != enabled:
            strategies.record_state(tx, place, enabled=enabled)
    for chunk in chunks(names if activate else ()):
        here = strategies_table.c.environment == environment, strategies_table.c.feature.in_(chunk)
        tx.db.execute(update(strategies_table).where(*here).values(disabled=False))
    strategies.insert_all(tx, new)
    update_states(tx, environment, "enabled", dict.fromkeys(names, enabled))


def _check_switch(place: StrategyPlace, row: Row[Any] | None, states: Mapping[str, FeatureState]) -> None:
    """Raise CallerError for a feature that cannot be switched."""
    if row is None or row.project != place.project:
        raise no_feature(place.feature, place.project, None if row is None else row.project)
    if place.feature not in states:
        raise not_found(f"Could not find environment {place.environment} for feature: {place.feature}")
    if row.archived_at is not None:
        raise CallerError("ArchivedFeatureError", "Cannot perform this operation on archived features", status=400)


def _record_activation(tx: Tx, place: StrategyPlace, held: Sequence[Row[Any]], used: Mapping[str, Sequence[int]]) -> None:
    """Record that the disabled ones of a feature's strategies are enabled."""
    for row in held:
        before = strategies.whole_strategy(row, used.get(row.id, ()))
        place.record_event(tx, "feature-strategy-update", before=before, data=before | {"disabled": False})


def _default_strategy(tx: Tx, place: StrategyPlace, held: Sequence[Row[Any]], position: int) -> Placed:
    """Return the default strategy for a feature, behind its strategies, and record it. Raises CallerError (400)."""
    if len(held) >= strategies.MAX_STRATEGIES:
        raise limit_exceeded("strategy", strategies.MAX_STRATEGIES)
    wanted = default_strategy(place.feature)
    columns: Json = {"constraints": [], "parameters": wanted["parameters"], "variants": []}
    order = held[-1].sort_order + 1 if held else 0
    whole = strategies.new_whole(wanted, columns, (), order=order, position=position)
    place.record_event(tx, "feature-strategy-add", data=whole)
    return Placed(place, whole)


def set_states(tx: Tx, wanted: Mapping[StrategyPlace, bool]) -> None:
    """Switch features on and off, without a look at their strategies. Those of an environment are read and written together."""
    for environment, places in _by_environment(wanted).items():
        before = read_states(tx, environment, places)
        changed = {name: wanted[place] for name, place in places.items() if wanted[place] != before[name].enabled}
        update_states(tx, environment, "enabled", changed)
        for name, enabled in changed.items():
            strategies.record_state(tx, places[name], enabled=enabled)


def list_variants(tx: Tx, place: StrategyPlace) -> list[Json]:
    """Return the variants of a feature in an environment. Raises CallerError (404)."""
    require(tx, place.project, place.feature)
    return list(require_state(tx, place).variants or [])


def replace_variants(tx: Tx, place: StrategyPlace, variants: object) -> list[Json]:
    """Replace the variants of a feature in an environment, and return them. Raises CallerError (400, 403, 404).

    As on the real server, only a feature that already has variants can get new ones this way. That server does not check the
    project.
    """
    _check_has_variants(tx, place.feature)
    checked = prepare_variants(variants)
    require(tx, place.project, place.feature)
    require_state(tx, place)
    save_variants(tx, {place: checked})
    return checked


def patch_variants(tx: Tx, place: StrategyPlace, operations: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Change the variants of a feature in an environment by a JSON Patch, and return them. Raises CallerError (400, 403, 404)."""
    before = require_state(tx, place)
    return replace_variants(tx, place, apply_patch(before.variants or [], operations))


def push_variants(tx: Tx, project: str, feature: str, environments: Sequence[str], variants: Sequence[Json]) -> list[Json]:
    """Replace the variants of a feature in several environments, and return them with weights. Raises CallerError (400, 404)."""
    given = [{"weightType": VARIABLE, "stickiness": "default"} | each for each in variants]
    checked = prepare_variants(given)
    require(tx, project, feature)
    places = [StrategyPlace(project, feature, each) for each in environments]
    for place in places:
        require_state(tx, place)
    save_variants(tx, dict.fromkeys(places, checked))
    weights = {each["name"]: each["weight"] for each in checked}
    return [each | {"weight": weights[each["name"]]} for each in given]


def save_variants(tx: Tx, wanted: Mapping[StrategyPlace, Sequence[Json]]) -> None:
    """Store the variants of features in environments unchanged. Those of an environment are read and written together."""
    for environment, places in _by_environment(wanted).items():
        before = read_states(tx, environment, places)
        missing = next((name for name in places if name not in before), None)
        if missing is not None:
            raise not_found(f"Could not find {missing} in {environment}")
        given = {name: list(wanted[each]) for name, each in places.items()}
        update_states(tx, environment, "variants", given)
        for name, variants in given.items():
            sides: Json = {"before": {"variants": before[name].variants}, "data": {"variants": variants}}
            places[name].record_event(tx, "feature-environment-variants-updated", **sides)


def _by_environment(places: Iterable[StrategyPlace]) -> dict[str, dict[str, StrategyPlace]]:
    found: dict[str, dict[str, StrategyPlace]] = {}
    for place in places:
        found.setdefault(place.environment, {})[place.feature] = place
    return found


def _check_has_variants(tx: Tx, feature: str) -> None:
    if not any(tx.db.execute(select(states.c.variants).where(states.c.feature == feature)).scalars()):
        message = f"Environment variants deprecated for feature: {feature}. Use strategy variants instead."
        raise CallerError("InvalidOperationError", message)


def check_environments(environments: Sequence[str] | None) -> Sequence[str]:
    """Return the environments. Raises CallerError (400) for none."""
    if not environments:
        raise bad_data("No environments provided")
    return environments
