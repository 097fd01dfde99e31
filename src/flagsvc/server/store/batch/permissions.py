"""The permissions that an import requires (import validation 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.database_facts import DatabaseFacts
from flagsvc.server.store.batch.dataset import DataSet


class RequiredPermission(NamedTuple):
    """A permission, the name that people see, and a function that tells whether a data set requires it."""

    permission: str
    name: str
    is_required: Callable[[DataSet, DatabaseFacts], bool]


def brings_context_fields(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether the data set has a new context field."""
    return any(each["name"] not in known.context_fields for each in data.context_fields)


def brings_strategies(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether the data set has strategies."""
    return bool(data.strategies)


def replaces_strategies(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether a feature of the data set has strategies in the environment, or the data set has no feature."""
    return known.has_strategies


def brings_variants(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether the data set has variants of an environment."""
    return any(True for _ in data.with_variants())


def brings_features(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether the data set has more entries than stored features, of any project, with their names."""
    return sum(name in known.features for name in set(data.names)) < len(data.features)


def always_required(data: DataSet, known: DatabaseFacts) -> bool:
    """Return True."""
    return True


def brings_tag_types(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether the data set has a new tag type."""
    return any(each["name"] not in known.tag_types for each in data.tag_types)


REQUIRED_PERMISSIONS = (
    RequiredPermission("CREATE_CONTEXT_FIELD", "Create context fields", brings_context_fields),
    RequiredPermission("CREATE_FEATURE_STRATEGY", "Create activation strategies", brings_strategies),
    RequiredPermission("DELETE_FEATURE_STRATEGY", "Delete activation strategies", replaces_strategies),
    RequiredPermission("UPDATE_FEATURE_ENVIRONMENT_VARIANTS", "Update variants", brings_variants),
    RequiredPermission("CREATE_FEATURE", "Create feature flags", brings_features),
    RequiredPermission("UPDATE_FEATURE", "Update feature flags", always_required),
    RequiredPermission("CREATE_TAG_TYPE", "Create tag types", brings_tag_types),
)
"""In the order of the answer."""
PERMISSIONS: Final[Mapping[str, str]] = {each.name: each.permission for each in REQUIRED_PERMISSIONS}
"""The name that people see → the permission."""


def missing_permissions(data: DataSet, known: DatabaseFacts, actor: Actor) -> list[str]:
    """Return the names of the required permissions that the actor does not have."""
    return [
        required.name
        for required in REQUIRED_PERMISSIONS
        if required.is_required(data, known) and not actor.may(required.permission, data.project, data.environment)
    ]
