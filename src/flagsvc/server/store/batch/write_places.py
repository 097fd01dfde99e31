"""Import, steps 2 and 8: what features are in the target environment, their variants and whether they are on
(import validation 6.3, steps 2 and 8)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select

from flagsvc.server.store.batch.change_requests import check_no_request_needed, lacking
from flagsvc.server.store.batch.work import FeatureState, ImportWork, change_places, read_places
from flagsvc.server.store.batch.write_strategies import insert_strategies
from flagsvc.server.store.checks import default_strategy, imported_variants
from flagsvc.server.store.refusals import Refusal, not_found
from flagsvc.server.store.schema import strategies
from flagsvc.server.store.upsert import chunks

CREATE_STRATEGY = "CREATE_FEATURE_STRATEGY"


def write_variants(work: ImportWork) -> None:
    """Replace the variants of features that bring some. Raises Refusal (400, 404)."""
    wanted = {each["featureName"]: imported_variants(each["variants"]) for each in work.data.with_variants()}
    places = read_places(work, wanted)
    for name in wanted:
        if name not in places:
            raise not_found(f"Could not find {name} in {work.data.environment}")
    changed = {name: variants for name, variants in wanted.items() if variants != places[name].variants}
    change_places(work, "variants", changed)
    for name, variants in changed.items():
        work.tell("feature-environment-variants-updated", name, {"variants": variants}, here=True)


def write_states(work: ImportWork) -> None:
    """Switch features on and off; one without an active strategy gets the default one. Raises Refusal (400, 403, 404).

    An entry is about the feature that its `name` says. Where two differ about one feature, it is on.
    """
    wanted: dict[str, bool] = {}
    for each in work.data.environments:
        wanted[each["name"]] = wanted.get(each["name"], False) or each["enabled"]
    if not wanted:
        return
    check_no_request_needed(work.tx, work.actor, work.data.project, work.data.environment)
    places = read_places(work, wanted)
    held = _strategies_of(work, wanted)
    _check_states(work, wanted, places, held)
    asleep = [name for name, on in wanted.items() if on and not any(held.get(name, ()))]
    insert_strategies(work, [default_strategy(name) | {"featureName": name} for name in asleep])
    changed = {name: on for name, on in wanted.items() if on != places[name].enabled}
    change_places(work, "enabled", changed)
    for name, on in changed.items():
        work.tell(f"feature-environment-{'enabled' if on else 'disabled'}", name, here=True)


def _strategies_of(work: ImportWork, names: Iterable[str]) -> dict[str, list[bool]]:
    """Return of each strategy that features have in the environment whether it is active, by feature."""
    query = select(strategies.c.feature, strategies.c.disabled).where(strategies.c.environment == work.data.environment)
    found: dict[str, list[bool]] = {}
    for some in chunks(names):
        for row in work.tx.db.execute(query.where(strategies.c.feature.in_(some))):
            found.setdefault(row.feature, []).append(not row.disabled)
    return found


def _check_states(
    work: ImportWork, wanted: dict[str, bool], places: dict[str, FeatureState], held: dict[str, list[bool]]
) -> None:
    """Raise Refusal for the first feature that cannot be switched: the real server checks all for one thing after the other."""
    project, environment = work.data.project, work.data.environment
    may_create = work.actor.may(CREATE_STRATEGY, project, environment)
    if not may_create and any(on and name in places and name not in held for name, on in wanted.items()):
        raise lacking([CREATE_STRATEGY], environment)
    for name in wanted:
        work.require(name)
    for name in wanted:
        if name not in places:
            raise not_found(f"Could not find environment {environment} for feature: {name}")
    if any(work.features[name].archived for name in wanted):
        message = "Cannot perform this operation on archived features"
        raise Refusal("ArchivedFeatureError", message, status=400)
