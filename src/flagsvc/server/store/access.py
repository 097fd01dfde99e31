"""Who asks, and what they may do: users, tokens and the keyring that knows every token (import validation 1; 4.3).

The keyring answers from memory. It is read anew when the database's revision moved, and the old one serves while the database is
away. It holds no secret, only their hashes.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Row, bindparam, select, update

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.server.store.actors import ADMIN_TOKEN_ID, ALL, Actor, ClientToken
from flagsvc.server.store.schema import environments, project_roles, tokens, users
from flagsvc.server.store.store import Store, Tx, read_revision

Holder: TypeAlias = Actor | ClientToken


def hash_of(secret: str) -> str:
    """Return what is stored of a secret. It is random, so that a slow hash would add nothing (decision 0017)."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class KeyringEntry:
    """One token as the keyring knows it: whom it stands for, and until when (seconds since the epoch)."""

    id: int
    hash: str
    holder: Holder
    expires: float | None


class Keyring:
    """Every token, in memory. `find` is called from any thread."""

    def __init__(self, store: Store, clock: Clock, log: Logger) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._loading = threading.Lock()
        self._revision = 0
        self._keys: dict[str, KeyringEntry] = {}
        self._seen: set[int] = set()

    def load(self, revision: int = 0) -> None:
        """Read every token, unless `revision` or a later one is read already. Raises `DatabaseError`; then nothing changes."""
        with self._loading:
            if revision and revision <= self._revision:
                return
            with self._store.reading() as tx:
                self._keys, self._revision = {key.hash: key for key in read_keys(tx)}, read_revision(tx.db)

    def find(self, secret: str) -> Holder | None:
        """Return whom a secret stands for; None for one that is unknown or expired."""
        digest = hash_of(secret)
        key = self._keys.get(digest)
        if key is None or not hmac.compare_digest(key.hash, digest):
            return None
        if key.expires is not None and key.expires <= self._clock.now():
            return None
        self._seen.add(key.id)
        return key.holder

    def note_seen(self) -> int:
        """Store when the tokens that were used since the last call were seen, and return how many. Never raises.

        Called now and then, not for each request; what the database does not take is tried again.
        """
        seen, self._seen = self._seen, set()
        if not seen:
            return 0
        try:
            with self._store.noting() as tx:
                note_tokens_seen(tx, seen)
        except DatabaseError as error:
            self._seen |= seen
            self._log.warn("when tokens were seen is not stored", error=str(error))
            return 0
        return len(seen)


def note_tokens_seen(tx: Tx, ids: Iterable[int]) -> None:
    """Store that tokens, and the users of personal ones, were seen now."""
    rows = [{"token": number, "moment": tx.now} for number in sorted(ids)]
    owner = select(tokens.c.user_id).where(tokens.c.id == bindparam("token")).scalar_subquery()
    tx.db.execute(update(tokens).where(tokens.c.id == bindparam("token")).values(seen_at=bindparam("moment")), rows)
    tx.db.execute(update(users).where(users.c.id == owner).values(seen_at=bindparam("moment")), rows)


def read_keys(tx: Tx) -> list[KeyringEntry]:
    """Return every token of the database."""
    actors = read_actors(tx)
    return [
        KeyringEntry(
            row.id, row.hash, _holder(row, actors), None if row.expires_at is None else row.expires_at.timestamp()
        )
        for row in tx.db.execute(select(tokens)).all()
        if row.kind != "personal" or row.user_id in actors
    ]


def read_actors(tx: Tx) -> dict[int, Actor]:
    """Return every user by number."""
    known = frozenset(tx.db.execute(select(environments.c.name)).scalars())
    roles: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for user, project, role in tx.db.execute(
        select(project_roles.c.user_id, project_roles.c.project, project_roles.c.role)
    ):
        roles[user][project] = (*roles[user].get(project, ()), role)
    found = tx.db.execute(select(users)).all()
    return {row.id: _user(row, roles.get(row.id, {}), known) for row in found}


def _user(row: Row[Any], roles: Mapping[str, tuple[str, ...]], known: frozenset[str]) -> Actor:
    name = row.email or row.username or "unknown"
    return Actor(row.id, name, "user", row.root_role, roles, known, row.username, row.email)


def _holder(row: Row[Any], actors: Mapping[int, Actor]) -> Holder:
    if row.kind == "personal":
        return actors[row.user_id]
    if row.kind == "admin":
        return Actor(ADMIN_TOKEN_ID, row.name, "token", "admin")
    return ClientToken(row.kind, row.environment or ALL, tuple(row.projects), row.name, row.id)
