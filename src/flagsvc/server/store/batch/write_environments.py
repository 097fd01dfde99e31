"""Import, steps 2 and 8: variants and states of features in the target environment
(import validation 6.3, steps 2 and 8)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select

from flagsvc.server.store.batch.change_requests import check_change_request_not_required, permission_refusal
from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.batch.write_strategies import insert_strategies
from flagsvc.server.store.checks import default_strategy, prepare_imported_variants
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.resources.feature_environments import FeatureState, read_states, save_variants, set_states
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.schema import strategies
from flagsvc.server.store.upsert import chunks

CREATE_STRATEGY = "CREATE_FEATURE_STRATEGY"


def write_variants(work: ImportWork) -> None:
    """Replace the variants of the features that the data set gives some. Raises CallerError (400, 404)."""
    wanted = {each["featureName"]: prepare_imported_variants(each["variants"]) for each in work.data.with_variants()}
    states = read_states(work.tx, work.data.environment, wanted)
    project, environment = work.data.project, work.data.environment
    held = {name: each.variants for name, each in states.items()}
    changed = {name: variants for name, variants in wanted.items() if name not in held or variants != held[name]}
    save_variants(work.tx, {StrategyPlace(project, name, environment): each for name, each in changed.items()})


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
    project, environment = work.data.project, work.data.environment
    set_states(work.tx, {StrategyPlace(project, name, environment): on for name, on in wanted.items()})


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
