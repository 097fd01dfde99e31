"""Import, steps 2, 7 and 8: variants, strategies and states of features in the target environment (import validation 6.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import func, select

from flagsvc.server.store.batch.change_requests import check_change_request_not_required
from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.checks import (
    check_segment_count,
    default_strategy,
    fill_parameters,
    prepare_imported_variants,
    prepare_variants,
)
from flagsvc.server.store.constraints import check_legal_values, check_limits, check_values
from flagsvc.server.store.errors import CallerError, bad_data, not_found, permission_refusal
from flagsvc.server.store.legal_values import read_legal_values
from flagsvc.server.store.resources.feature_environments import FeatureState, read_states, save_variants, set_states
from flagsvc.server.store.resources.strategies import (
    Placed,
    add,
    as_integer_if_whole,
    new_whole,
    read_sort_order,
    remove_all,
    segments_of,
    whole_strategy,
)
from flagsvc.server.store.schema import strategies
from flagsvc.server.store.upsert import chunks


def write_strategies(work: ImportWork) -> None:
    """Replace the strategies of the data set's features, and add those of other features. Raises CallerError (400, 403, 404)."""
    for chunk in chunks(dict.fromkeys(work.data.names)):
        here = strategies.c.environment == work.data.environment, strategies.c.feature.in_(chunk)
        rows = work.tx.db.execute(select(strategies).where(*here).order_by(strategies.c.position)).all()
        used = segments_of(work.tx, (row.id for row in rows))
        held = [(row.feature, whole_strategy(row, used.get(row.id, ()))) for row in rows]
        remove_all(work.tx, [Placed(work.place_of(name), whole) for name, whole in held])
    if work.data.strategies:
        check_change_request_not_required(work.tx, None, work.data.project, work.data.environment)
        insert_strategies(work, work.data.strategies)


def insert_strategies(work: ImportWork, wanted: Sequence[Json]) -> None:
    """Add strategies, each to the feature of its `featureName`, in bulk. Raises CallerError (400, 404)."""
    if not wanted:
        return
    for each in wanted:
        work.require(each["featureName"])
    wholes = _strategies(work, wanted)
    for whole, used in zip(wholes, _segments(work, wanted), strict=True):
        check_segment_count(used)
        whole["segments"] = used
    if not work.known.environment:
        raise bad_data("You have not added the current environment to the project")
    places = [work.place_of(each["featureName"]) for each in wanted]
    add(work.tx, list(map(Placed, places, wholes)))


def _segments(work: ImportWork, wanted: Sequence[Json]) -> list[list[int]]:
    """Return the ids of the segments of each strategy on this server. Raises CallerError (400) for an undeclared one."""
    names = {each["id"]: each["name"] for each in work.data.segments}
    found: list[list[int]] = []
    for each in wanted:
        numbers = each.get("segments") or []
        unknown = [number for number in numbers if number not in names]
        if unknown:
            name, which = each["featureName"], ", ".join(str(as_integer_if_whole(number)) for number in unknown)
            raise bad_data(f"A strategy of {name} uses segments that the data does not declare: {which}")
        found.append([work.known.segments[names[number]].id for number in numbers])
    return found


def _strategies(work: ImportWork, wanted: Sequence[Json]) -> list[Json]:
    """Return the checked strategies. Like the real server, check the values of all, then whether they are legal."""
    legal = read_legal_values(
        work.tx, (constraint["contextName"] for each in wanted for constraint in each.get("constraints") or ())
    )
    last = _read_last_orders(work, [each["featureName"] for each in wanted])
    positions = work.tx.positions(strategies, len(wanted))
    wholes = [
        _strategy(work, each, _sort_order_of(each, last), position)
        for position, each in zip(positions, wanted, strict=True)
    ]
    for whole in wholes:
        check_legal_values(whole["constraints"], legal)
        whole["variants"] = prepare_variants(whole["variants"])
    return wholes


def _strategy(work: ImportWork, wanted: Json, order: float, position: int) -> Json:
    constraints = wanted.get("constraints") or []
    check_limits(constraints)
    feature = wanted["featureName"]
    columns = {
        "parameters": fill_parameters(wanted["name"], wanted.get("parameters"), feature, work.project.stickiness),
        "constraints": check_values(constraints),
        "variants": wanted.get("variants") or [],
    }
    return new_whole(wanted, columns, (), order=order, position=position)


def _read_last_orders(work: ImportWork, names: Sequence[str]) -> dict[str, float]:
    """Return the highest sort order of each feature that has strategies."""
    here = strategies.c.environment == work.data.environment
    query = select(strategies.c.feature, func.max(strategies.c.sort_order)).group_by(strategies.c.feature)
    return {
        feature: last
        for chunk in chunks(dict.fromkeys(names))
        for feature, last in work.tx.db.execute(query.where(here, strategies.c.feature.in_(chunk)))
    }


def _sort_order_of(wanted: Json, last: dict[str, float]) -> float:
    """Return the sort order of a strategy: its own, or else the next one after the strategies that have one; update `last`.

    As on the real server, strategies without a sort order all get the same one, after the existing strategies.
    """
    before = last.get(wanted["featureName"])
    order = read_sort_order(wanted, 0.0 if before is None or before != int(before) else before + 1)
    if wanted.get("sortOrder") is not None:
        last[wanted["featureName"]] = order if before is None else max(before, order)
    return order


CREATE_STRATEGY = "CREATE_FEATURE_STRATEGY"


def write_variants(work: ImportWork) -> None:
    """Replace the variants of the features that the data set gives some. Raises CallerError (400, 404)."""
    wanted = {each["featureName"]: prepare_imported_variants(each["variants"]) for each in work.data.with_variants()}
    states = read_states(work.tx, work.data.environment, wanted)
    held = {name: each.variants for name, each in states.items()}
    changed = {name: variants for name, variants in wanted.items() if name not in held or variants != held[name]}
    save_variants(work.tx, {work.place_of(name): each for name, each in changed.items()})


def write_states(work: ImportWork) -> None:
    """Switch features on and off. A feature without an active strategy gets the default one. Raises CallerError (400, 403, 404).

    An entry's `name` is its feature. Where two entries of a feature differ, it is switched on.
    """
    wanted: dict[str, bool] = {}
    for each in work.data.environments:
        wanted[each["name"]] = wanted.get(each["name"], False) or each["enabled"]
    if not wanted:
        return
    check_change_request_not_required(work.tx, work.actor, work.data.project, work.data.environment)
    states = read_states(work.tx, work.data.environment, wanted)
    active_strategies = _read_active_strategies(work, wanted)
    _check_states(work, wanted, states, active_strategies)
    without_strategy = [name for name, on in wanted.items() if on and not any(active_strategies.get(name, ()))]
    insert_strategies(work, [default_strategy(name) | {"featureName": name} for name in without_strategy])
    set_states(work.tx, {work.place_of(name): on for name, on in wanted.items()})


def _read_active_strategies(work: ImportWork, names: Iterable[str]) -> dict[str, list[bool]]:
    """Return for each strategy in the environment whether it is active, by feature."""
    query = select(strategies.c.feature, strategies.c.disabled).where(strategies.c.environment == work.data.environment)
    found: dict[str, list[bool]] = {}
    for chunk in chunks(names):
        for row in work.tx.db.execute(query.where(strategies.c.feature.in_(chunk))):
            found.setdefault(row.feature, []).append(not row.disabled)
    return found


def _check_states(
    work: ImportWork, wanted: dict[str, bool], states: dict[str, FeatureState], active_strategies: dict[str, list[bool]]
) -> None:
    """Raise CallerError for the first feature that cannot be switched. Like the real server, each check runs over all features."""
    project, environment = work.data.project, work.data.environment
    may_create = work.actor.may(CREATE_STRATEGY, project, environment)
    if not may_create and any(on and name in states and name not in active_strategies for name, on in wanted.items()):
        raise permission_refusal([CREATE_STRATEGY], environment)
    for name in wanted:
        work.require(name)
    for name in wanted:
        if name not in states:
            raise not_found(f"Could not find environment {environment} for feature: {name}")
    if any(work.features[name].archived for name in wanted):
        message = "Cannot perform this operation on archived features"
        raise CallerError("ArchivedFeatureError", message, status=400)
