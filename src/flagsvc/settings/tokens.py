"""What a token of a flag server says of itself in its text, `project:environment.secret`, and the kinds of value that list tokens.

The API tokens of a new database are listed as a real server takes them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flagsvc.settings.kinds import Kind, RefusedError, parse_header_value, secret, several

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


ADMIN_FORM, CLIENT_FORM = "*:*.secret", "project:environment.secret"


def _token(text: str) -> NamedScope:
    """Return what a token names. Raises RefusedError."""
    named = read_scope(parse_header_value(text))
    if named is None:
        raise RefusedError("a token has the form project:environment.secret")
    if read_exact_scope(text) is None:
        raise RefusedError("a token for several projects cannot say which: make it on the page Tokens, or in a seed")
    return named


def parse_admin(value: object) -> str:
    """Return the secret of an admin token, which is for all projects and environments."""
    text = parse_header_value(value)
    if _token(text)[:2] != (EVERY_PROJECT, EVERY_ENVIRONMENT):
        raise RefusedError("an admin token is for all projects and environments: it begins with `*:*.`")
    return text


def parse_client(value: object) -> str:
    """Return the secret of a token for SDKs and proxies, which is for one environment."""
    text = parse_header_value(value)
    if _token(text).environment == EVERY_ENVIRONMENT:
        raise RefusedError("a token for SDKs and proxies is for one environment: project:environment.secret")
    return text


def _kind(parse: Callable[[object], str], form: str) -> Kind:
    return secret(several(parse, f"tokens such as {form}, with commas between", "TOKENS"))


ADMIN_TOKENS = _kind(parse_admin, ADMIN_FORM)
CLIENT_TOKENS = _kind(parse_client, CLIENT_FORM)
