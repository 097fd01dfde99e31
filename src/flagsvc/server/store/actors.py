"""The callers of the admin API and the tokens of clients: what each may do and see (import validation 4.3), by one table of roles.

One difference is intended. On the real server, permissions for environments apply to the two initial environments only. Here they
apply to every environment, so that an editor can work in the environments of a seed file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

ALL = "*"
ADMIN_TOKEN_ID = -42
"""The user id that the real server's events give to an admin token."""

COMMAND_ID = -1337
"""The user id that the real server's events give to the server itself; here of changes by a command."""

Kind: TypeAlias = Literal["user", "token"]


@dataclass(frozen=True)
class Actor:
    """A caller of the admin API: a user, or an admin token. `project_roles` maps a project to names of roles.

    `token` is the name of the token that the caller uses.
    """

    id: int
    name: str
    kind: Kind = "user"
    root_role: str = "viewer"
    project_roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    environments: frozenset[str] = frozenset({"development", "production"})
    username: str | None = None
    email: str | None = None
    token: str | None = field(default=None, compare=False)

    @property
    def is_user(self) -> bool:
        """Whether this is a user: an admin token may not import (import validation 6)."""
        return self.kind == "user"

    @cached_property
    def grants(self) -> frozenset[Grant]:
        """Every permission that the actor has through the root role and the roles in projects."""
        found = set(list_grants(ROOT_ROLES[self.root_role], DEFAULT_PROJECT, self.environments))
        for project, names in self.project_roles.items():
            for name in names:
                found.update(list_grants(PROJECT_ROLES[name], project, self.environments))
        return frozenset(found)

    def may(self, permission: str, project: str | None = None, environment: str | None = None) -> bool:
        """Return whether the actor has a permission; `project` and `environment` say where it is needed."""
        if self.root_role == "admin":
            return True
        places = ((None, None), (project, None), (project, environment))
        return any(Grant(permission, *place) in self.grants for place in places)

    def may_ever(self, permission: str) -> bool:
        """Return whether the actor has a permission anywhere."""
        return self.root_role == "admin" or any(each.permission == permission for each in self.grants)


FRONTEND = "frontend"
"""The kind of the tokens for browsers and apps."""


@dataclass(frozen=True)
class ClientToken:
    """A token of clients: `kind` is backend or frontend; `projects` are ids, or only `*` for all."""

    kind: str
    environment: str
    projects: tuple[str, ...]
    name: str = ""
    id: int = 0

    def covers(self, project: str) -> bool:
        """Return whether the token sees a project's flags."""
        return self.projects == (ALL,) or project in self.projects


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
    "owner": Role(project=_MANAGER | _names("UPDATE_PROJECT_CONTEXT UPDATE_PROJECT_SEGMENT"), environment=_IN_ENVIRONMENTS),
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
