"""Who asks, and what they may do: users, tokens, their secrets and the keyring that knows every token (import validation 1; 4.3).

The keyring answers from memory. It reloads when the database's revision changes, and keeps its old entries while the database
cannot be read. It holds hashes of the secrets, never the secrets.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_hex
from typing import Any, TypeAlias

from sqlalchemy import Row, bindparam, select, update

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.server.store.actors import ADMIN_TOKEN_ID, ALL, FRONTEND, Actor, ClientToken
from flagsvc.server.store.schema import environments, project_roles, tokens, users
from flagsvc.server.store.store import Store, Tx, read_revision
from flagsvc.server.store.writability import trouble

TokenOwner: TypeAlias = Actor | ClientToken

PERSONAL, SESSION, LINK = "personal", "session", "link"
"""The kinds of tokens that a user owns. A session opens pages only, and a link only the sign-in."""
OF_USERS = (PERSONAL, SESSION, LINK)
IS_TOKEN = tokens.c.kind.not_in((SESSION, LINK))
"""The condition that a row of the tokens is a token."""
BY_TOKEN, BY_HEADER, BY_PROVIDER = "token", "header", "provider"
"""What opens a session, besides a link: the first word of its name."""
IDLE_S = 12 * 3600.0
"""Seconds after which an unused session ends."""


NO_DIGESTS: Mapping[str, bytes] = {}


def hash_secret(secret: str) -> str:
    """Return the hash under which a secret is stored. A secret is random, so a slow hash would add nothing (decision 0025)."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class KeyringEntry:
    """One token in the keyring: its kind, its owner and its name, when it expires, and the last use that the database knows.

    Times are in seconds since the epoch; None for never.
    """

    id: int
    hash: str
    kind: str
    owner: TokenOwner
    name: str
    expires: float | None
    seen: float | None


class Keyring:
    """Every token, in memory. `find` is safe to call from any thread."""

    def __init__(self, store: Store, clock: Clock, log: Logger) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._load_lock = threading.Lock()
        self._revision = 0
        self._entries: dict[str, KeyringEntry] = {}
        self._digests: dict[str, dict[str, bytes]] = {}
        self._used_tokens: set[int] = set()
        self._session_times: dict[int, float] = {}

    def load(self, revision: int = 0) -> None:
        """Read every token, unless `revision` or a later one is already loaded. Raises `DatabaseError` and then changes nothing."""
        with self._load_lock:
            if revision and revision <= self._revision:
                return
            with self._store.reading() as tx:
                self._entries, self._revision = {key.hash: key for key in read_keys(tx)}, read_revision(tx.db)
            self._digests = digest_frontend_tokens(self._entries.values())
            sessions = {key.id for key in self._entries.values() if key.kind == SESSION}
            for number in [each for each in list(self._session_times) if each not in sessions]:
                self._session_times.pop(number, None)

    def find(self, secret: str) -> TokenOwner | None:
        """Return the owner of a token; None for an unknown or expired one. Sessions and links are no tokens."""
        key = self._find(secret)
        if key is None or key.kind in (SESSION, LINK):
            return None
        self._used_tokens.add(key.id)
        return key.owner

    def find_session(self, secret: str, person: str = "") -> Actor | None:
        """Return the user of a session; None if there is no such session, or if it ended or was not used for IDLE_S seconds.

        `person` is the digest of the user that a proxy names; the session that it has opened is only for requests of the same.
        """
        key = self._find(secret)
        if key is None or key.kind != SESSION or not isinstance(key.owner, Actor):
            return None
        if self._is_idle(key) or not _is_for(key, person):
            return None
        self._used_tokens.add(key.id)
        self._session_times[key.id] = self._clock.now()
        return key.owner

    def digests_of(self, environment: str) -> Mapping[str, bytes]:
        """Return a digest of each frontend token of an environment, by the token's id. Only servers of this database know them."""
        return self._digests.get(environment, NO_DIGESTS)

    def is_valid(self, secret: str) -> bool:
        """Return whether a token or a session has not ended. This is no use of it."""
        key = self._find(secret)
        return key is not None and not (key.kind == SESSION and self._is_idle(key))

    def _is_idle(self, key: KeyringEntry) -> bool:
        """Return whether a session was not used for IDLE_S seconds."""
        return self._clock.now() - max(key.seen or 0.0, self._session_times.get(key.id, 0.0)) > IDLE_S

    def _find(self, secret: str) -> KeyringEntry | None:
        """Return the entry of a secret; None for an unknown or expired one."""
        digest = hash_secret(secret)
        key = self._entries.get(digest)
        if key is None or not hmac.compare_digest(key.hash, digest):
            return None
        return None if key.expires is not None and key.expires <= self._clock.now() else key

    def save_seen_times(self) -> int:
        """Store the last use of the tokens used since the last call, and return how many there were. Never raises.

        A background thread calls this from time to time, not each request. After a database error the next call tries again.
        """
        seen, self._used_tokens = self._used_tokens, set()
        if not seen:
            return 0
        try:
            with self._store.recording() as tx:
                save_tokens_seen(tx, seen)
        except DatabaseError as error:
            self._used_tokens |= seen
            trouble(self._log, error)("the last use of tokens could not be stored", error=str(error))
            return 0
        return len(seen)


def digest_frontend_tokens(keys: Iterable[KeyringEntry]) -> dict[str, dict[str, bytes]]:
    """Return a digest of each frontend token by its id, for each environment, the oldest token first."""
    found: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    for key in sorted(keys, key=lambda each: each.id):
        if isinstance(key.owner, ClientToken) and key.owner.kind == FRONTEND:
            found[key.owner.environment][str(key.id)] = hashlib.sha512(key.hash.encode()).digest()
    return dict(found)


def _is_for(key: KeyringEntry, person: str) -> bool:
    """Return whether a session may be used by a person that a proxy names; any session that no header opened may."""
    way, _, digest = key.name.partition(" ")
    return way != BY_HEADER or hmac.compare_digest(digest, person)


def save_tokens_seen(tx: Tx, ids: Iterable[int]) -> None:
    """Store now as the last use of tokens, and of the users whose personal tokens they are."""
    rows = [{"token": number, "moment": tx.now} for number in sorted(ids)]
    owner = select(tokens.c.user_id).where(tokens.c.id == bindparam("token")).scalar_subquery()
    tx.db.execute(update(tokens).where(tokens.c.id == bindparam("token")).values(seen_at=bindparam("moment")), rows)
    tx.db.execute(update(users).where(users.c.id == owner).values(seen_at=bindparam("moment")), rows)


def read_keys(tx: Tx) -> list[KeyringEntry]:
    """Return every token of the database."""
    actors = read_actors(tx)
    return [
        KeyringEntry(
            row.id,
            row.hash,
            row.kind,
            _read_owner(row, actors),
            row.name,
            _seconds(row.expires_at),
            _seconds(row.seen_at),
        )
        for row in tx.db.execute(select(tokens)).all()
        if row.kind not in OF_USERS or row.user_id in actors
    ]


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def read_actors(tx: Tx) -> dict[int, Actor]:
    """Return every user, by id."""
    known = frozenset(tx.db.execute(select(environments.c.name)).scalars())
    roles: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for user, project, role in tx.db.execute(select(project_roles.c.user_id, project_roles.c.project, project_roles.c.role)):
        roles[user][project] = (*roles[user].get(project, ()), role)
    found = tx.db.execute(select(users)).all()
    return {row.id: _read_user(row, roles.get(row.id, {}), known) for row in found}


def _read_user(row: Row[Any], roles: Mapping[str, tuple[str, ...]], known: frozenset[str]) -> Actor:
    name = row.email or row.username or "unknown"
    return Actor(row.id, name, "user", row.root_role, roles, known, row.username, row.email)


def _read_owner(row: Row[Any], actors: Mapping[int, Actor]) -> TokenOwner:
    if row.kind in OF_USERS:
        return replace(actors[row.user_id], token=row.name if row.kind == PERSONAL else None)
    if row.kind == "admin":
        return Actor(ADMIN_TOKEN_ID, row.name, "token", "admin", token=row.name)
    return ClientToken(row.kind, row.environment or ALL, tuple(row.projects), row.name, row.id)


RANDOM_BYTES = 28
HINT_CHARACTERS = 4
"""Characters of the random part that a hint shows; a random part shorter than four times this shows none."""


def new_secret(projects: Sequence[str], environment: str) -> str:
    """Return a secret in the real server's form `project:environment.random`; `[]` stands for several projects."""
    return f"{projects[0] if len(projects) == 1 else '[]'}:{environment}.{token_hex(RANDOM_BYTES)}"


def new_personal_secret() -> str:
    """Return the secret of a user's token."""
    return f"user:{token_hex(RANDOM_BYTES)}"


def make_hint(secret: str) -> str:
    """Return what may be shown of a secret: the part before the random one, and a few characters of a long random part."""
    head, mark, rest = secret.rpartition("." if "." in secret else ":")
    return f"{head}{mark}{rest[:HINT_CHARACTERS]}" if len(rest) >= 4 * HINT_CHARACTERS else f"{head}{mark}"


PAUSE_S = 0.02
"""Seconds before each read, in which callers gather. Made-up secrets cause no more reads."""
MOST_S = 1.0
"""The most seconds that a caller waits, so that each gets an answer while the database is away."""
NOT_READING = float("inf")
DONE: Future[None] = Future()
DONE.set_result(None)


class KeyRenewal:
    """Reads the revision for callers with an unknown secret, in a thread of its own. Safe to call from any thread."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="flagsvc keys")
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._next: Future[None] | None = None
        self._began = NOT_READING

    def renew(self) -> Future[None]:
        """Return a future that is done when the tokens are as new as the database is now, or cannot be read.

        Callers share a read that has not begun. No caller waits for a read that hangs: a future keeps something for each caller.
        """
        with self._lock:
            if self._clock.monotonic() - self._began > MOST_S:
                return DONE
            if self._next is None:
                self._next = self._pool.submit(self._read)
            return self._next

    def close(self) -> None:
        """End the thread after a running read."""
        self._closing.set()
        self._pool.shutdown()

    def _read(self) -> None:
        self._closing.wait(PAUSE_S)
        with self._lock:
            self._next, self._began = None, self._clock.monotonic()
        try:
            with suppress(DatabaseError):  # the listener logs an outage, and the tokens in memory stay valid
                self._store.notify_watchers(self._store.revision())
        finally:
            with self._lock:
                self._began = NOT_READING
