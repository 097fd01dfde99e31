"""What a token opens: its kind, its environment, and its projects. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from flagsvc.settings.tokens import EVERY_PROJECT, SEVERAL_PROJECTS, read_exact_scope, read_scope

KINDS: Mapping[str, bool] = {"client": True, "backend": True, "frontend": False}
"""The types of tokens that callers may use, and whether each is one for servers. The upstream has other types, such as `admin`."""
LONGEST = 1000
"""The most characters of a token. A longer text is no token, and is not asked about."""


class TokenScope(NamedTuple):
    """An environment, and projects in it; None for all of them."""

    environment: str
    projects: frozenset[str] | None

    def covers(self, other: TokenScope) -> bool:
        """Return whether everything of another scope is in this one."""
        if self.environment != other.environment:
            return False
        return self.projects is None or (other.projects is not None and other.projects <= self.projects)

    def limited_to(self, project: str | None) -> TokenScope:
        """Return the part of this scope that is in one project; all of it if that is None or empty."""
        if not project:
            return self
        only = frozenset([project])
        return self._replace(projects=only if self.projects is None else self.projects & only)

    @property
    def breadth(self) -> float:
        """The number of projects; infinite for all of them."""
        return math.inf if self.projects is None else len(self.projects)


class TokenGrant(NamedTuple):
    """What the upstream says about a token: whether it is for servers, and its scope."""

    is_server: bool
    scope: TokenScope


def scope_of_text(token: str) -> TokenScope | None:
    """Return the scope that a token names in its text, `project:environment.secret`; None if it has another form.

    The name of a project may contain a dot. A token for several projects does not name them. It counts as one for all, until the
    upstream has told.
    """
    named = read_scope(token)
    if named is None:
        return None
    is_one = named.project not in (EVERY_PROJECT, SEVERAL_PROJECTS)
    return TokenScope(named.environment, frozenset([named.project]) if is_one else None)


def exact_scope_of_text(token: str) -> TokenScope | None:
    """Return the scope that a token names in its text; None if only the upstream knows it."""
    return None if read_exact_scope(token) is None else scope_of_text(token)


def is_plausible(token: str) -> bool:
    """Return whether a text can be a token: printable ASCII without blanks, and not too long.

    It has no character that JSON escapes, either. So a question has a bound in bytes, which callers cannot pass: an upstream that
    refuses it as too long would answer no caller.
    """
    if not (0 < len(token) <= LONGEST and token.isascii() and token.isprintable()):
        return False
    return not any(character in token for character in ' "\\')


def read_grant(told: object) -> tuple[str, TokenGrant] | None:
    """Return a token and its grant from an entry of the upstream's answer; None for an entry that no caller can use."""
    if not isinstance(told, dict):
        return None
    token, kind, environment = told.get("token"), told.get("type"), told.get("environment")
    projects = told.get("projects")
    if not (isinstance(token, str) and isinstance(environment, str) and isinstance(kind, str) and kind in KINDS):
        return None
    named = [each for each in projects if isinstance(each, str)] if isinstance(projects, list) else []
    if not named:
        return None
    return token, TokenGrant(KINDS[kind], TokenScope(environment, None if EVERY_PROJECT in named else frozenset(named)))
