"""The permissions that an import asks for (import validation 4.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import DataSet
from flagsvc.server.store.batch.known import DatabaseFacts


class RequiredPermission(NamedTuple):
    """A permission, the name people see, and what tells whether a data set asks for it."""

    permission: str
    name: str
    when: Callable[[DataSet, DatabaseFacts], bool]


def brings_context_fields(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether a context field is new."""
    return any(each["name"] not in known.context_fields for each in data.context_fields)


def brings_strategies(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether there are strategies."""
    return bool(data.strategies)


def replaces_strategies(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether a feature of the data set has strategies in the environment, or the data set has no feature."""
    return known.has_strategies


def brings_variants(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether there are variants of an environment."""
    return any(True for _ in data.with_variants())


def brings_features(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether fewer features are stored under the names, in any project, than the data set has entries."""
    return sum(name in known.features for name in set(data.names)) < len(data.features)


def always(data: DataSet, known: DatabaseFacts) -> bool:
    """Return that it is asked for."""
    return True


def brings_tag_types(data: DataSet, known: DatabaseFacts) -> bool:
    """Return whether a tag type is new."""
    return any(each["name"] not in known.tag_types for each in data.tag_types)


ASKED = (
    RequiredPermission("CREATE_CONTEXT_FIELD", "Create context fields", brings_context_fields),
    RequiredPermission("CREATE_FEATURE_STRATEGY", "Create activation strategies", brings_strategies),
    RequiredPermission("DELETE_FEATURE_STRATEGY", "Delete activation strategies", replaces_strategies),
    RequiredPermission("UPDATE_FEATURE_ENVIRONMENT_VARIANTS", "Update variants", brings_variants),
    RequiredPermission("CREATE_FEATURE", "Create feature flags", brings_features),
    RequiredPermission("UPDATE_FEATURE", "Update feature flags", always),
    RequiredPermission("CREATE_TAG_TYPE", "Create tag types", brings_tag_types),
)
"""In the order of the answer."""


def missing_permissions(data: DataSet, known: DatabaseFacts, actor: Actor) -> list[str]:
    """Return the names of the permissions that the actor would need and does not have."""
    return [
        asked.name
        for asked in ASKED
        if asked.when(data, known) and not actor.may(asked.permission, data.project, data.environment)
    ]
