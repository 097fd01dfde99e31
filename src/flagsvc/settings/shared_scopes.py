"""Warnings about environments with the same flags, or with the same looked-up tokens, and about upstreams that see the same tokens.

A token is never shown (behaviour: Several environments).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from flagsvc.settings.environments import TABLE
from flagsvc.settings.rows.callers import LOOKED_UP
from flagsvc.settings.tokens import EVERY_PROJECT, SEVERAL_PROJECTS, read_scope
from flagsvc.settings.upstreams import upstream_of

Values: TypeAlias = Mapping[str, Any]
"""The values of one environment by option name."""


def shared_scopes(environments: Iterable[tuple[str, Values]]) -> Iterator[str]:
    """Yield a warning for each group of environments with the same flags, and for each that the same looked-up tokens open.

    Also for each group whose upstreams may be asked about the same tokens.
    """
    given = list(environments)
    alike, opened = group(given, flags_key), group(given, opening_key)
    for names in alike:
        more = f", and {only_first(names)}" if names in opened else ""
        yield f"{TABLE}: {listed(names)} have the same upstream token and project: they have the same flags{more}"
    for names in opened:
        if names not in alike:
            yield f"{TABLE}: {listed(names)} have the same environment and projects upstream: {only_first(names)}"
    for names in asked_together(given):
        yield (
            f"{TABLE}: {listed(names)} have several upstreams for environments of one name: each of these upstreams may be asked"
            " about a token that none of them knows yet"
        )


def only_first(names: Sequence[str]) -> str:
    """Return what becomes of looked-up tokens that would open several environments."""
    return f"tokens that are looked up open `{min(names)}` alone"


def token_key(values: Values) -> Hashable:
    """Return the upstream, its token and the project of an environment; None without a token."""
    token = values.get("flagsvcApiToken")
    return (upstream_of(values), token, values.get("projectName") or "") if token else None


def flags_key(values: Values) -> Hashable:
    """Return what decides which flags an environment has; None without a token."""
    key = token_key(values)
    return None if key is None else (key, values.get("namePrefix") or "", values.get("tags") or ())


def opening_key(values: Values) -> Hashable:
    """Return what decides which looked-up tokens open an environment; None if there are none."""
    if values.get("tokenValidation") != LOOKED_UP:
        return None
    named = read_scope(values.get("flagsvcApiToken") or "")
    if named is None or named.project == SEVERAL_PROJECTS:
        return token_key(values)
    project = values.get("projectName") or named.project
    is_empty = named.project not in (EVERY_PROJECT, project)
    return None if is_empty else (upstream_of(values), named.environment, project)


def asked_together(given: Iterable[tuple[str, Values]]) -> list[list[str]]:
    """Return the names of environments whose upstreams may all be asked about a token: those of one name upstream.

    A token of an upstream that names no environment may be of any.
    """
    looking = []
    for name, values in given:
        token = values.get("flagsvcApiToken")
        if token and values.get("tokenValidation") == LOOKED_UP:
            named = read_scope(token)
            looking.append((name, upstream_of(values), "" if named is None else named.environment))
    environments = dict.fromkeys(environment for _, _, environment in looking if environment)
    groups = [[each for each in looking if each[2] in (environment, "")] for environment in environments or [""]]
    return [[name for name, _, _ in each] for each in groups if len({upstream for _, upstream, _ in each}) > 1]


def group(given: Sequence[tuple[str, Values]], key_of: Callable[[Values], Hashable]) -> list[list[str]]:
    """Return the names of environments with the same key, wherever there are several."""
    found: dict[Hashable, list[str]] = {}
    for name, values in given:
        key = key_of(values)
        if key is not None:
            found.setdefault(key, []).append(name)
    return [names for names in found.values() if len(names) > 1]


def listed(names: Sequence[str]) -> str:
    """Return names as a part of a sentence."""
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} and {last}"
