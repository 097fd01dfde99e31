"""What a token of a flag server says of itself in its text, `project:environment.secret`. Pure."""

from __future__ import annotations

from typing import NamedTuple

EVERY_PROJECT = EVERY_ENVIRONMENT = "*"
SEVERAL_PROJECTS = "[]"
"""What a token for several projects names in place of a project. Only its flag server knows which they are."""


class NamedScope(NamedTuple):
    """The project and the environment that a token names. The project may also be `*` for all, or `[]` for several."""

    project: str
    environment: str

    @property
    def prefix(self) -> str:
        """The part of the token that is not secret."""
        return f"{self.project}:{self.environment}."


def read_scope(token: str) -> NamedScope | None:
    """Return what a token names; None if it has another form. The name of a project may contain a dot."""
    project, _, rest = token.partition(":")
    environment, _, secret = rest.partition(".")
    return NamedScope(project, environment) if project and environment and secret else None


def read_exact_scope(token: str) -> NamedScope | None:
    """Return what a token names; None if it does not name its projects, because it has another form or is for several."""
    named = read_scope(token)
    return None if named is None or named.project == SEVERAL_PROJECTS else named
