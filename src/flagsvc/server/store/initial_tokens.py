"""Creates the API tokens that a server is started with, in a database that has none, as a real server does (decision 0065)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from sqlalchemy import func, select

from flagsvc.core.errors import ConfigurationError
from flagsvc.server.store.keyring import OF_USERS
from flagsvc.server.store.schema import environments, projects, tokens
from flagsvc.server.store.seed.apply import Seed, apply_seed
from flagsvc.server.store.seed.events import read_state, record_changes
from flagsvc.server.store.store import Store, Tx
from flagsvc.settings.kinds import printable
from flagsvc.settings.server import ServerOptions
from flagsvc.settings.tokens import EVERY_ENVIRONMENT, EVERY_PROJECT, read_scope

Entry: TypeAlias = dict[str, Any]
"""A token as the entry of a seed."""

NAME = "initial"
"""The name of each of these tokens."""
CREATED = "api-token-created"
KINDS = {"admin": "init_admin_tokens", "backend": "init_backend_tokens", "frontend": "init_frontend_tokens"}
"""The kinds of token, and the options that list them."""


def find_wanted_tokens(store: Store, options: ServerOptions) -> list[Entry]:
    """Return the initial tokens of the options that the database lacks: none if it has an API token.

    Raises ConfigurationError for a token of an unknown project or environment.
    """
    wanted = _entries(options)
    with store.reading() as tx:
        if not wanted or _has_api_tokens(tx):
            return []
        problems = list(_problems(tx, wanted))
    if problems:
        raise ConfigurationError(problems)
    return wanted


def create_initial_tokens(store: Store, wanted: list[Entry]) -> int:
    """Create tokens and return how many; none if another server of the database came first."""
    if not wanted:
        return 0
    with store.writing(None, "start") as tx:
        if _has_api_tokens(tx):
            return 0
        before = read_state(tx, (CREATED,))
        apply_seed(tx, Seed({"tokens": wanted}))
        record_changes(tx, before)
    return len(wanted)


def _entries(options: ServerOptions) -> list[Entry]:
    """Return the tokens as entries of a seed. A secret that several options list is of the last kind."""
    entries: dict[str, Entry] = {}
    for kind, field in KINDS.items():
        for secret in getattr(options, field):
            scope = read_scope(secret)
            if scope is not None:
                named = {"environment": scope.environment, "projects": [scope.project]}
                entries[secret] = {"type": kind, "name": NAME, "secret": secret, **named}
    return list(entries.values())


def _has_api_tokens(tx: Tx) -> bool:
    """Return whether there is a token that belongs to no user."""
    counted = select(func.count()).select_from(tokens).where(tokens.c.kind.not_in(OF_USERS))
    return bool(tx.db.execute(counted).scalar_one())


def _problems(tx: Tx, wanted: list[Entry]) -> Iterator[str]:
    """Yield a problem for each name of a project or environment that the database does not have."""
    for key, column, every in (
        ("environment", environments.c.name, EVERY_ENVIRONMENT),
        ("project", projects.c.id, EVERY_PROJECT),
    ):
        known = {every, *tx.db.execute(select(column)).scalars()}
        named = (each["environment"] if key == "environment" else each["projects"][0] for each in wanted)
        for name in dict.fromkeys(name for name in named if name not in known):
            yield f"initial tokens: no {key} `{printable(name)}`; create it with a seed (FLAGSVC_SEED), or correct the token"
