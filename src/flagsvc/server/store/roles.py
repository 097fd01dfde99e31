"""The permissions of each role of the real server, as one table (import validation 4.3).

One difference is intended. On the real server, permissions for environments apply to the two initial environments only. Here
they apply to every environment, so that an editor can work in one that a seed file created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

ADMIN = "ADMIN"
DEFAULT_PROJECT = "default"


class Role(NamedTuple):
    """The permissions of a role: for the whole server, for a project, and for each environment of that project."""

    root: frozenset[str] = frozenset()
    project: frozenset[str] = frozenset()
    environment: frozenset[str] = frozenset()


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IN_ENVIRONMENTS = _names(
    "CREATE_FEATURE_STRATEGY UPDATE_FEATURE_STRATEGY DELETE_FEATURE_STRATEGY "
    "UPDATE_FEATURE_ENVIRONMENT UPDATE_FEATURE_ENVIRONMENT_VARIANTS"
)
_MEMBER = _names(
    "CREATE_FEATURE UPDATE_FEATURE DELETE_FEATURE UPDATE_FEATURE_VARIANTS UPDATE_FEATURE_DEPENDENCY "
    "CREATE_PROJECT_API_TOKEN READ_PROJECT_API_TOKEN DELETE_PROJECT_API_TOKEN"
)
_MANAGER = _MEMBER | _names("UPDATE_PROJECT DELETE_PROJECT MOVE_FEATURE_TOGGLE")

ROOT_ROLES = {
    "admin": Role(root=frozenset({ADMIN})),
    "editor": Role(
        root=_names(
            "CREATE_ADDON UPDATE_ADDON DELETE_ADDON CREATE_CONTEXT_FIELD UPDATE_CONTEXT_FIELD DELETE_CONTEXT_FIELD "
            "CREATE_PROJECT CREATE_SEGMENT UPDATE_SEGMENT DELETE_SEGMENT CREATE_STRATEGY UPDATE_STRATEGY DELETE_STRATEGY "
            "CREATE_TAG_TYPE UPDATE_TAG_TYPE DELETE_TAG_TYPE READ_CLIENT_API_TOKEN READ_FRONTEND_API_TOKEN "
            "RELEASE_PLAN_TEMPLATE_CREATE RELEASE_PLAN_TEMPLATE_UPDATE UPDATE_APPLICATION"
        ),
        project=_MANAGER,
        environment=_IN_ENVIRONMENTS,
    ),
    "viewer": Role(),
}
"""Root role → its permissions. An editor's permissions for a project hold in the project `default` only."""

PROJECT_ROLES = {
    "owner": Role(
        project=_MANAGER | _names("UPDATE_PROJECT_CONTEXT UPDATE_PROJECT_SEGMENT"), environment=_IN_ENVIRONMENTS
    ),
    "member": Role(project=_MEMBER, environment=_IN_ENVIRONMENTS),
}
"""Role in a project → its permissions there."""


class Grant(NamedTuple):
    """One permission of an actor; None means every project, or every environment."""

    permission: str
    project: str | None = None
    environment: str | None = None


def list_grants(role: Role, project: str, environments: frozenset[str]) -> Iterator[Grant]:
    """Yield the permissions of a role in a project, on a server with these environments."""
    yield from (Grant(name) for name in sorted(role.root))
    yield from (Grant(name, project) for name in sorted(role.project))
    for name in sorted(role.environment):
        yield from (Grant(name, project, environment) for environment in sorted(environments))
