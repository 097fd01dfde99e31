"""Tokens of Unleash Edge: the environments that they name, and the keys of callers in each.

A token is `project:environment.secret`, with `*` for all projects and `[]` for several. Secrets are never part of a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from flagsvc.cli.migrating.migration import About, Migration
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.environments import MAX_ENVIRONMENTS, middle_of
from flagsvc.settings.kinds import printable
from flagsvc.settings.tokens import EVERY_PROJECT, SEVERAL_PROJECTS

SEVERAL_NAME = "several"
HOMELESS = "a key of environment `{}` is left out, because TOKENS has none for it"
NAMELESS = "a key is left out, because it names no environment: Edge asks for the form `key@environment`"
TOKEN = re.compile(r"([^:@\s]*):([^:.@\s]+)\.(\S+)")

DIVIDED = (
    "a caller's token for several projects opens none of {tables}, unless one of them has all these projects; Edge answers from"
    " all; use one backend token of `{environment}` that has all projects"
)
"""What is different if several tables have the projects of one environment."""


class EdgeToken(NamedTuple):
    """A token and the project and environment that it names; both are empty for a text of another form."""

    text: str
    project: str = ""
    environment: str = ""


def read_token(text: str) -> EdgeToken:
    found = TOKEN.fullmatch(text)
    return EdgeToken(text, found[1] or EVERY_PROJECT, found[2]) if found else EdgeToken(text)


def read_key(text: str) -> EdgeToken:
    """Return a trusted key: a token, or `secret@environment`, of which callers send the secret."""
    secret, at, environment = text.rpartition("@")
    if at and secret and not TOKEN.fullmatch(text):
        return EdgeToken(secret, EVERY_PROJECT, environment)
    return read_token(text)


def split_list(text: str) -> list[str]:
    """Return the items of a list with commas between."""
    return [item.strip() for item in text.split(",") if item.strip()]


def translate_tokens(given: Mapping[str, str], migration: Migration) -> None:
    """Set the tokens for the upstream, one of them alone or each in its environment, and the keys that Edge trusts.

    Raises ConfigurationError for more environments than a process can have.
    """
    tokens = distinct(split_list(given.get("TOKENS", "")), migration)
    if len(tokens) > MAX_ENVIRONMENTS:
        raise ConfigurationError([f"TOKENS: expected at most {MAX_ENVIRONMENTS} environments, found {len(tokens)}"])
    names = name_environments(tokens) if len(tokens) > 1 else dict(zip(("",), tokens, strict=False))
    for name, token in names.items():
        migration.set("flagsvcApiToken", token.text, "TOKENS", environment=name)
    migration.set_default("tokenValidation", "upstream", "keys of callers are looked up, as Edge does")
    if len(tokens) > 1:
        text = f"several environments in one process, each with its token: {', '.join(names)}"
        migration.note(About.CHANGED, "TOKENS", text)
    for environment, tables in divided_environments(names).items():
        migration.note(About.CHANGED, "TOKENS", DIVIDED.format(tables=", ".join(tables), environment=environment))
    keys = [read_key(text) for text in split_list(given.get("PRETRUSTED_TOKENS", ""))]
    assigned = assign_keys(keys, names)
    for name, found in assigned.keys.items():
        migration.set("clientKeys", found, "PRETRUSTED_TOKENS", environment=name)
    for key in assigned.homeless:
        migration.note(
            About.NEEDED,
            "PRETRUSTED_TOKENS",
            HOMELESS.format(printable(key.environment)) if key.environment else NAMELESS,
        )


def distinct(texts: Iterable[str], migration: Migration) -> list[EdgeToken]:
    """Return the tokens that are needed: one for each project and environment."""
    found: dict[tuple[str, ...], EdgeToken] = {}
    for number, text in enumerate(dict.fromkeys(texts), 1):
        token = read_token(text)
        if not token.environment:
            form = "project:environment.secret"
            migration.note(About.CHANGED, "TOKENS", f"token {number} is not of the form `{form}`, which Edge asks for")
        alone = token.project == SEVERAL_PROJECTS or not token.environment
        scope = (token.text,) if alone else (token.project, token.environment)
        if scope in found:
            where = f"environment `{printable(token.environment)}`"
            migration.note(About.IGNORED, "TOKENS", f"token {number}: another one reads the same of {where}")
        found.setdefault(scope, token)
    return list(found.values())


def name_environments(tokens: Sequence[EdgeToken]) -> dict[str, EdgeToken]:
    """Return the tokens by the names of their tables. A name is that of the environment, and of the project where needed."""
    scopes = [token.environment for token in tokens]
    names: dict[str, EdgeToken] = {}
    for token in tokens:
        name = printable(token.environment) or "default"
        if scopes.count(token.environment) > 1 and token.environment and token.project != EVERY_PROJECT:
            name = f"{name}-{SEVERAL_NAME if token.project == SEVERAL_PROJECTS else printable(token.project)}"
        names[unique(name, names)] = token
    return names


def divided_environments(names: Mapping[str, EdgeToken]) -> dict[str, list[str]]:
    """Return the environments whose projects are in several tables, with the names of these. None if one of them has all."""
    found: dict[str, list[EdgeToken]] = {}
    for token in names.values():
        found.setdefault(token.environment, []).append(token)
    return {
        printable(environment): [name for name, token in names.items() if token in tokens]
        for environment, tokens in found.items()
        if environment and len(tokens) > 1 and all(token.project != EVERY_PROJECT for token in tokens)
    }


def unique(name: str, taken: Iterable[str]) -> str:
    """Return a name, with a number behind it if another one makes the same variables."""
    used = {middle_of(other) for other in taken}
    number, candidate = 1, name
    while middle_of(candidate) in used:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


class Assigned(NamedTuple):
    """Keys of callers by the names of the tables, and those of environments that have no table."""

    keys: dict[str, list[str]]
    homeless: list[EdgeToken]


def assign_keys(keys: Iterable[EdgeToken], names: Mapping[str, EdgeToken]) -> Assigned:
    """Return where keys belong, by the tokens of the tables: to their environment, and there to their project if it has a table."""
    found = Assigned({}, [])
    tables: dict[tuple[str, ...], tuple[int, str]] = {}
    for place, (name, token) in enumerate(names.items()):
        tables.setdefault((token.environment,), (place, name))
        tables.setdefault((token.environment, token.project), (place, name))
    for key in keys:
        fitting = [tables[each,] for each in (key.environment, "") if (each,) in tables]
        same = [tables[each, key.project] for each in (key.environment, "") if (each, key.project) in tables]
        if fitting:
            found.keys.setdefault(min(same or fitting)[1], []).append(key.text)
        else:
            found.homeless.append(key)
    return found
