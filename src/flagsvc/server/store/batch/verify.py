"""The checks before an import: validation reports all that it finds (import validation 4), an import the first (6.2).

A missing permission is a finding, too (4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.change_requests import permission_refusal
from flagsvc.server.store.batch.database_facts import DatabaseFacts, read_database_facts
from flagsvc.server.store.batch.dataset import DataSet, Json, read_data_set
from flagsvc.server.store.batch.rules import (
    ERRORS,
    WARNINGS,
    apply,
    conflicting_context_fields,
    foreign_features,
    missing_parents,
    missing_segments,
    unknown_strategies,
)
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources.features import not_active
from flagsvc.server.store.store import Tx

USER_REQUIRED = (
    "You can't use an admin token to import features. Please use either a personal access token "
    "(https://docs.getunleash.io/concepts/api-tokens-and-client-keys#personal-access-tokens) or a service account "
    "(https://docs.getunleash.io/concepts/service-accounts)."
)


def check_importer(actor: Actor) -> None:
    """Raise CallerError (400) for an admin token: only users may import."""
    if not actor.is_user:
        raise bad_data(USER_REQUIRED)


def verify(data: DataSet, known: DatabaseFacts, actor: Actor) -> None:
    """Raise CallerError (400, 403) if a cleaned data set cannot be imported by the actor."""
    _check_supported(unknown_strategies(data, known))
    _check_supported(conflicting_context_fields(data, known))
    missing = missing_permissions(data, known, actor)
    if missing:
        raise permission_refusal(missing)
    for message, find in (
        ("These features exist already in other projects", foreign_features),
        ("Unsupported segments", missing_segments),
        ("The following dependent features are missing", missing_parents),
    ):
        found = find(data, known)
        if found:
            raise bad_data(f"{message}: {', '.join(found)}")


def _check_supported(names: Sequence[str]) -> None:
    """Raise CallerError (400) with one detail for each unsupported name; return if there is none."""
    messages = [f"{name} is not supported." for name in names]
    if messages:
        raise CallerError("BadDataError", INVALID, [{"description": each, "message": each} for each in messages])


MISSING_PERMISSIONS = "We detected you are missing the following permissions:"


def validate(tx: Tx, actor: Actor, body: Mapping[str, Any], sent: Mapping[str, Any]) -> Json:
    """Return the `errors`, `warnings` and missing `permissions` of an import of the body by the actor.

    `body` has the shape of importTogglesSchema and texts that the database can store. `sent` is the same body with its original
    texts; the rules use it. Raises CallerError (404) if the project or the environment does not exist, or the
    project is archived: the specification lists that answer (the real server does not give it).
    """
    data = read_data_set(sent)
    known = read_database_facts(tx, read_data_set(body))
    check_target(data, known)
    missing = missing_permissions(data, known, actor)
    return {
        "errors": apply(ERRORS, data, known),
        "warnings": apply(WARNINGS, data, known),
        "permissions": [{"message": MISSING_PERMISSIONS, "affectedItems": missing}] if missing else [],
    }


def check_target(data: DataSet, known: DatabaseFacts) -> None:
    """Raise CallerError (404) unless the target project and environment exist and the project is active."""
    if known.project is None:
        raise not_found(f"Could not find project with id {data.project}")
    if known.project.archived:
        raise not_active(data.project)
    if not known.environment:
        raise not_found(f"Could not find environment with name {data.environment}")


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
