"""The callers of the admin API and the tokens of clients: what each may do and see (import validation 1, step 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from flagsvc.server.store.roles import DEFAULT_PROJECT, PROJECT_ROLES, ROOT_ROLES, Grant, list_grants

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
