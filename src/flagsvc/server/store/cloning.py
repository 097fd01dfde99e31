"""Copies a feature under another name (the real server's …/clone)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from flagsvc.server.store.checks import Json, check_name
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources import dependencies, features, strategies
from flagsvc.server.store.resources.feature_environments import save_variants
from flagsvc.server.store.resources.feature_views import states_of
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.schema import feature_tags
from flagsvc.server.store.store import Tx


def clone(tx: Tx, project: str, name: str, new_name: str, *, replace_group: bool = True) -> Json:
    """Create a copy of an active feature in a project and return it.

    With `replace_group`, the groupId of the copied strategies becomes the new name.

        Raises CallerError (400, 403, 404, 409).
    """
    check_name(new_name)
    features.check_unused(tx, [new_name])
    row = features.find(tx, name)
    if row is None or row.archived_at is not None:
        raise not_found(f"Could not find feature flag with name {name}")
    described = {"name": new_name, "type": row.type, "description": row.description, "stale": row.stale}
    tags = tx.db.execute(select(feature_tags.c.type, feature_tags.c.value).where(feature_tags.c.feature == name))
    described |= {"impressionData": row.impression_data, "tags": [dict(each._mapping) for each in tags]}
    created = features.create(tx, project, described)
    for state in states_of(tx, [name])[name]:
        place = StrategyPlace(project, new_name, state.environment)
        if state.variants:
            save_variants(tx, {place: state.variants})
        for strategy in strategies.list_all(tx, name, state.environment):
            strategies.create(tx, place, copy_strategy(strategy, new_name, replace_group=replace_group))
    for parent in dependencies.parents_of(tx, name):
        dependencies.add(tx, project, new_name, parent)
    return created


def copy_strategy(strategy: Mapping[str, Any], feature: str, *, replace_group: bool) -> Json:
    """Return a copy of a strategy for another feature."""
    parameters = dict(strategy["parameters"])
    if replace_group and "groupId" in parameters:
        parameters["groupId"] = feature
    return {**strategy, "parameters": parameters}
