"""The database of the flag server: transactions, and the revision.

Writers run one after the other, on SQLite with its write lock, on PostgreSQL with an advisory lock. So the revision counts
commits in their order, and a check within a transaction still holds when it commits. Transactions that only record usage do not
take PostgreSQL's advisory lock; SQLite has one lock for all writers. A transaction that raises is rolled back.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import msgspec
from sqlalchemy import Connection, Engine, Table, create_engine, event, func, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger, describe_error
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.connections import LOCK_TIMEOUT_S, READING, enable_wal
from flagsvc.server.store.event_kinds import Way
from flagsvc.server.store.event_log import store_events
from flagsvc.server.store.migrate import migrate, require_current, require_known, require_ours
from flagsvc.server.store.revision_listener import CHANNEL, RevisionListener, watch_changes
from flagsvc.server.store.schema import revision

WRITER_LOCK_KEY = 0x666C6167
"""The key of PostgreSQL's advisory lock for writers."""
POOL_SIZE = 16
WRITING = "flagsvc_writing"
MEMORY = ":memory:"
POSTGRESQL = ("postgres", "postgresql")
"""The schemes of PostgreSQL's URLs."""
Prepare: TypeAlias = Callable[[Engine], None]
"""Makes a database ready for use, or checks that it is. Raises `DatabaseError`."""


@dataclass
class Tx:
    """One transaction: its connection, its time (UTC, after the wait for writers) and its actor; None for the server itself.

    `way` says how its changes come about, and `action` identifies them together.
    """

    db: Connection
    now: datetime
    actor: Actor | None = None
    way: Way = "api"
    action: str = field(default_factory=lambda: str(uuid4()))
    pending_events: list[dict[str, Any]] = field(default_factory=list)

    def record_event(
        self,
        kind: str,
        *,
        project: str | None = None,
        environment: str | None = None,
        feature: str | None = None,
        before: Any = None,
        data: Any = None,
    ) -> None:
        """Record a change of a kind of `event_kinds.py`; it is stored when the transaction commits.

        `before` is what was there, read in this transaction, and `data` what is there now; None for nothing. Where both are the
        same nothing changed, and nothing is recorded.
        """
        if before is not None and before == data:
            return
        row = {"type": kind, "project": project, "environment": environment, "feature": feature}
        who = self.actor
        by = {"created_by": "system" if who is None else who.name, "created_by_id": None if who is None else who.id}
        how = {"token": None if who is None else who.token, "way": self.way, "action": self.action}
        self.pending_events.append(row | by | how | {"before": before, "data": data, "created_at": self.now})

    def positions(self, table: Table, count: int = 1) -> range:
        """Return the next `count` positions for new rows of a table."""
        last = self.db.execute(select(func.coalesce(func.max(table.c.position), 0))).scalar_one()
        return range(last + 1, last + 1 + count)


class Store:
    """A database of flags. Transactions may run in any thread; every failure of the database raises `DatabaseError`."""

    def __init__(self, engine: Engine, clock: Clock, log: Logger, listen: str | None = None) -> None:
        self.engine = engine
        self._listen = listen
        self._clock = clock
        self._log = log
        self._notified = 0
        self._lock = threading.Lock()
        self._notify_lock = threading.RLock()
        self._watchers: list[Callable[[int], None]] = []
        self._listener: RevisionListener | None = None

    def reading(self) -> AbstractContextManager[Tx]:
        """Return a read-only transaction with one consistent view of the database."""
        return self._transaction(None, {READING: True})

    @contextmanager
    def recording(self, actor: Actor | None = None) -> Iterator[Tx]:
        """Yield a transaction for data that changes no flag: usage, registrations, the last use of tokens."""
        with self._transaction(actor, {WRITING: True}) as tx:
            yield tx
            store_events(tx.db, tx.pending_events)

    @contextmanager
    def writing(self, actor: Actor | None, way: Way = "api") -> Iterator[Tx]:
        """Yield a transaction that changes flags, after all earlier writers. Its commit is a new revision; watchers get it."""
        with self._transaction(actor, {WRITING: True}) as tx:
            self._wait_for_writers(tx)
            tx.way = way
            yield tx
            store_events(tx.db, tx.pending_events)
            number = self._increment_revision(tx.db)
        self.notify_watchers(number)

    @contextmanager
    def dry_run(self, actor: Actor | None) -> Iterator[Tx]:
        """Yield a transaction like `writing`, and always roll it back: no change, no event, no new revision."""
        with self._transaction(actor, {WRITING: True}) as tx:
            self._wait_for_writers(tx)
            yield tx
            tx.db.rollback()

    def _wait_for_writers(self, tx: Tx) -> None:
        """Wait for earlier writers. On SQLite the transaction has already waited when it began."""
        if self._is_postgresql:
            tx.db.execute(select(func.pg_advisory_xact_lock(WRITER_LOCK_KEY)))
            tx.now = self.now()

    def revision(self) -> int:
        """Return how many transactions changed flags, on all servers of this database."""
        with self.reading() as tx:
            return read_revision(tx.db)

    def watch(self, callback: Callable[[int], None]) -> None:
        """Call `callback` with the revision after each change, by this or another server. The call may come from any thread."""
        with self._lock:
            self._watchers.append(callback)
            if self._listener is None:
                self._listener = watch_changes(self.engine, self._listen, self.notify_watchers, self._log)

    def notify_watchers(self, number: int) -> None:
        """Call the watchers with a revision, once. All of them have been called when this returns, also by another thread."""
        with self._notify_lock:
            self._call_watchers(number)

    def _call_watchers(self, number: int) -> None:
        with self._lock:
            if number <= self._notified:
                return
            self._notified = number
            watchers = list(self._watchers)
        for watcher in watchers:
            try:
                watcher(number)
            except Exception as error:  # the change is committed, so its author must not see an error
                self._log.error("a watcher of changes failed", revision=number, error=describe_error(error))
                with self._lock:  # notify again with the next change, or when the revision is next read
                    self._notified = min(self._notified, number - 1)

    def close(self) -> None:
        """Stop watching, and close every connection."""
        if self._listener is not None:
            self._listener.close()
        self.engine.dispose()

    @property
    def _is_postgresql(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def _transaction(self, actor: Actor | None, options: dict[str, Any]) -> Iterator[Tx]:
        """Yield a transaction; commit it unless the block raises."""
        try:
            with self.engine.connect().execution_options(**options) as db, db.begin():
                yield Tx(db, self.now(), actor)
        except SQLAlchemyError as error:
            raise DatabaseError(describe_database_error(error)) from error

    def now(self) -> datetime:
        """Return the time (UTC)."""
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _increment_revision(self, db: Connection) -> int:
        """Increment the revision, notify the other servers at commit, and return it."""
        db.execute(update(revision).values(number=revision.c.number + 1))
        number = read_revision(db)
        if self._is_postgresql:
            db.execute(select(func.pg_notify(CHANNEL, str(number))))
        return number


def read_revision(db: Connection) -> int:
    """Return the revision as a transaction sees it."""
    return int(db.execute(select(revision.c.number)).scalar_one())


def open_store(database: str, clock: Clock, log: Logger, listen: str | None = None) -> Store:
    """Open and migrate a database, given as a URL or the path of an SQLite file. Raises `DatabaseError`.

    `listen` is a URL of the same database on PostgreSQL at which changes are listened for, past a pooler.
    """
    if listen is not None:
        require_listenable(database, listen)
    return _open(database, clock, log, migrate, listen)


def require_listenable(database: str, listen: str) -> None:
    """Raise `DatabaseError` unless a database and the URL to listen at are both of PostgreSQL."""
    for name, each in (("database", database), ("URL to listen at", listen)):
        if database_url(each).get_backend_name() != "postgresql":
            raise DatabaseError(f"only PostgreSQL has a URL to listen at, and the {name} is a file")


def open_existing_store(database: str, clock: Clock, log: Logger, prepare: Prepare = require_current) -> Store:
    """Open a database that exists, and change nothing in it. `prepare` checks its schema: it must be this version's one.

    Raises `DatabaseError`, also for a file that does not exist, and for an older or newer schema.
    """
    url = database_url(database)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise DatabaseError(
            f"there is no database: the file `{url.database}` does not exist; a start of `flagsvc server` creates it"
        )
    return _open(database, clock, log, prepare)


def open_known_store(database: str, clock: Clock, log: Logger) -> Store:
    """Open a database that exists with the schema of this version or an older one. Raises `DatabaseError` for any other one."""
    return open_existing_store(database, clock, log, require_known)


def open_any_store(database: str, clock: Clock, log: Logger) -> Store:
    """Open a database that is empty or has the schema of this version or an older one, and change nothing in it.

    Raises `DatabaseError` for any other one.
    """
    return _open(database, clock, log, require_ours)


def _open(database: str, clock: Clock, log: Logger, prepare: Prepare, listen: str | None = None) -> Store:
    """Open a database after `prepare`. Raises `DatabaseError`."""
    engine = make_engine(database)
    try:
        prepare(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        place = f" (the file `{engine.url.database}`)" if engine.dialect.name == "sqlite" else ""
        raise DatabaseError(describe_database_error(error) + place) from error
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, clock, log, listen)


def make_engine(database: str) -> Engine:
    """Return SQLAlchemy's engine for a URL or the path of an SQLite file. Raises `DatabaseError` for any other text."""
    url = database_url(database)
    if url.get_backend_name() == "sqlite":
        return sqlite_engine(url)
    from flagsvc.server.store.postgresql import make_postgresql_engine  # with the driver, which a file does not need

    return make_postgresql_engine(
        url,
        "flagsvc",
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=LOCK_TIMEOUT_S,
        json_serializer=dump_json,
        json_deserializer=load_json,
    )


def database_url(database: str) -> URL:
    """Return the URL for `postgres://…`, `sqlite:///…`, or a path. Raises `DatabaseError`, which shows no secret."""
    url = parse_url(database)
    if url.get_backend_name() == "sqlite" and is_in_memory(url):
        raise DatabaseError("an SQLite database in memory is not supported: give the path of a file")
    if url.get_backend_name() == "sqlite" and url.query:
        raise DatabaseError(f"an SQLite database takes no options: `{', '.join(sorted(url.query))}` is not understood")
    return url


def is_in_memory(url: URL) -> bool:
    """Return whether an SQLite database is in memory, where every connection would have its own."""
    return url.database in (None, "", MEMORY, f"file:{MEMORY}") or url.query.get("mode") == "memory"


def parse_url(database: str) -> URL:
    """Parse a URL, or return the URL of the SQLite file at a path. Raises `DatabaseError`."""
    if "://" not in database:
        return URL.create("sqlite", database=str(Path(database).expanduser()))
    scheme = database.partition(":")[0].lower().partition("+")[0]
    if scheme in POSTGRESQL:
        from flagsvc.server.store.postgresql import read_url  # with the driver, which a file does not need

        return read_url(database)
    try:
        url = make_url(database)
    except (ArgumentError, ValueError):
        url = None
    if url is None or scheme != "sqlite":
        raise DatabaseError(
            "the database's URL is not understood: expected postgresql://user:password@host/name, sqlite:///path or a path"
        )
    return url.set(drivername=scheme)


def dump_json(value: object) -> str:
    """Return a JSON value as it is stored; infinite numbers and NaN become null, as in JavaScript."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(replace_infinities(value))


def load_json(text: str | bytes) -> Any:
    """Return a stored JSON value. A value that the fast parser refuses, such as half a surrogate pair, takes the plain one."""
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return json.loads(text)


def replace_infinities(value: Any) -> Any:
    """Return a JSON value with null in place of NaN and infinite numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: replace_infinities(each) for key, each in value.items()}
    return [replace_infinities(each) for each in value] if isinstance(value, list | tuple) else value


def sqlite_engine(url: URL) -> Engine:
    """Return an engine for an SQLite file: with WAL, foreign keys, and transactions that SQLAlchemy begins."""
    engine = create_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=LOCK_TIMEOUT_S,
        json_serializer=dump_json,
        json_deserializer=load_json,
        connect_args={"timeout": LOCK_TIMEOUT_S},
    )

    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver itself begins no transactions
        enable_wal(connection)
        for pragma in ("foreign_keys = ON", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def on_begin(db: Connection) -> None:
        db.exec_driver_sql("BEGIN IMMEDIATE" if db.get_execution_options().get(WRITING) else "BEGIN")

    return engine


def describe_database_error(error: SQLAlchemyError) -> str:
    """Return what went wrong with the database, without the statement, its parameters, and secrets."""
    if not isinstance(error, DBAPIError) or error.orig is None:
        return f"the database failed: {type(error).__name__}"
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    return f"the database failed: {type(error.orig).__name__}" + (f": {lines[0][:200]}" if lines else "")
