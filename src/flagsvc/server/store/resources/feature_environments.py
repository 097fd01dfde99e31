"""Features in environments: their state and variants (the real server's …/environments; import validation 6.3, steps 2 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select, update

from flagsvc.server.store.checks import VARIABLE, Json, prepare_variants
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.patch import apply_patch
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.features import require
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.schema import feature_environments as states
from flagsvc.server.store.store import Tx


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
        {
            "id": row.id,
            "featureName": row.feature,
            "title": row.title,
            "parameters": row.parameters,
            "constraints": row.constraints,
            "variants": row.variants,
            "sortOrder": strategies.as_integer_if_whole(row.sort_order),
            "disabled": row.disabled,
            "name": row.name,
        }
        for row in strategies.list_rows(tx, place.feature, place.environment)
    ]
    return {
        "name": place.feature,
        "environment": place.environment,
        "enabled": state.enabled,
        "strategies": listed_strategies,
    }


def switch(tx: Tx, place: StrategyPlace, *, enabled: bool, activate: bool = False) -> None:
    """Switch a feature on or off in an environment; switching on adds the default strategy if none is active (6.3, 8).

    With `activate`, disabled strategies are enabled instead. Raises CallerError (400 for an archived feature, 404).
    """
    row = require(tx, place.project, place.feature)
    if find_state(tx, place) is None:
        raise not_found(f"Could not find environment {place.environment} for feature: {place.feature}")
    if row.archived_at is not None:
        raise CallerError("ArchivedFeatureError", "Cannot perform this operation on archived features", status=400)
    if enabled:
        strategies.ensure_active(tx, place, activate=activate)
    strategies.set_state(tx, place, enabled=enabled)


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
    save_variants(tx, place, checked)
    return checked


def patch_variants(tx: Tx, place: StrategyPlace, operations: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Change the variants of a feature in an environment by a JSON Patch, and return them. Raises CallerError (400, 403, 404)."""
    before = require_state(tx, place)
    return replace_variants(tx, place, apply_patch(before.variants or [], operations))


def push_variants(
    tx: Tx, project: str, feature: str, environments: Sequence[str], variants: Sequence[Json]
) -> list[Json]:
    """Replace the variants of a feature in several environments, and return them with weights. Raises CallerError (400, 404)."""
    given = [{"weightType": VARIABLE, "stickiness": "default"} | each for each in variants]
    checked = prepare_variants(given)
    require(tx, project, feature)
    places = [StrategyPlace(project, feature, each) for each in environments]
    for place in places:
        require_state(tx, place)
    for place in places:
        save_variants(tx, place, checked)
    weights = {each["name"]: each["weight"] for each in checked}
    return [each | {"weight": weights[each["name"]]} for each in given]


def save_variants(tx: Tx, place: StrategyPlace, variants: Sequence[Json]) -> None:
    """Store the variants of a feature in an environment unchanged."""
    here = states.c.feature == place.feature, states.c.environment == place.environment
    before = {"variants": require_state(tx, place).variants or []}
    tx.db.execute(update(states).where(*here).values(variants=list(variants)))
    data = {"variants": list(variants)}
    place.record_event(tx, "feature-environment-variants-updated", before=before, data=data)


def _check_has_variants(tx: Tx, feature: str) -> None:
    if not any(tx.db.execute(select(states.c.variants).where(states.c.feature == feature)).scalars()):
        message = f"Environment variants deprecated for feature: {feature}. Use strategy variants instead."
        raise CallerError("InvalidOperationError", message)


def check_environments(environments: Sequence[str] | None) -> Sequence[str]:
    """Return the environments. Raises CallerError (400) for none."""
    if not environments:
        raise bad_data("No environments provided")
    return environments
