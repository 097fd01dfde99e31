"""Which role may do what: the real server's roles and permissions as one table (import validation 4.3).

One difference on purpose: the real server ties the permissions of an environment to the two environments it is born with; here a
role has them in every environment there is, so that an editor can work in one that a seed file brought.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

ADMIN = "ADMIN"
DEFAULT_PROJECT = "default"


class Role(NamedTuple):
    """What a role permits: in the whole server, in a project, and in each environment of that project."""

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
"""Root role → what it permits; what it permits in a project, it permits in the default one only."""

PROJECT_ROLES = {
    "owner": Role(
        project=_MANAGER | _names("UPDATE_PROJECT_CONTEXT UPDATE_PROJECT_SEGMENT"), environment=_IN_ENVIRONMENTS
    ),
    "member": Role(project=_MEMBER, environment=_IN_ENVIRONMENTS),
}
"""Role in a project → what it permits there."""


class Grant(NamedTuple):
    """One permission that somebody has; None: in every project, in every environment."""

    permission: str
    project: str | None = None
    environment: str | None = None


def grants(role: Role, project: str, environments: frozenset[str]) -> Iterator[Grant]:
    """Give what a role permits somebody who has it in a project of a server with these environments."""
    yield from (Grant(name) for name in sorted(role.root))
    yield from (Grant(name, project) for name in sorted(role.project))
    for name in sorted(role.environment):
        yield from (Grant(name, project, environment) for environment in sorted(environments))
