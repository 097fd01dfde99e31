"""The kinds of value that list the API tokens of a new database: `project:environment.secret`, as a real server takes them."""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.settings.kinds import Kind, RefusedError, parse_header_value, secret, several
from flagsvc.settings.tokens import EVERY_ENVIRONMENT, EVERY_PROJECT, NamedScope, read_exact_scope, read_scope

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
