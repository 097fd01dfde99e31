"""The database of the flag server: transactions, and the count of changes (house: one mutable cell per concern).

Writers stand in line, on SQLite behind its write lock, on PostgreSQL behind an advisory lock: so the revision counts the commits
in their order, and a check that a transaction makes still holds when it commits. What only notes usage takes no place in the
line on PostgreSQL; SQLite has one lock for all that write. A transaction that ends with an exception leaves nothing behind.
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
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, func, insert, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger, describe_error
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.changes import CHANNEL, RevisionListener, watch_changes
from flagsvc.server.store.connecting import PATIENCE_S, postgresql_arguments, use_log
from flagsvc.server.store.migrate import migrate
from flagsvc.server.store.schema import events, revision

WRITERS = 0x666C6167
"""The key of the advisory lock that writers take on PostgreSQL."""
CONNECTIONS = 16
WRITING = "flagsvc_writing"
MEMORY = ":memory:"
DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg", "sqlite": "sqlite"}
"""Scheme of a database's URL → dialect and driver."""


@dataclass
class Tx:
    """One transaction: its connection, its moment (UTC, when its turn came) and who acts; None where the server itself does."""

    db: Connection
    now: datetime
    actor: Actor | None = None
    happened: list[dict[str, Any]] = field(default_factory=list)

    def event(
        self,
        kind: str,
        *,
        project: str | None = None,
        environment: str | None = None,
        feature: str | None = None,
        data: Any = None,
    ) -> None:
        """Tell that something happened; it is stored when the transaction commits."""
        row = {"type": kind, "project": project, "environment": environment, "feature": feature, "data": data}
        who = self.actor
        by = {"created_by": "system" if who is None else who.name, "created_by_id": None if who is None else who.id}
        self.happened.append(row | by | {"created_at": self.now})

    def positions(self, table: Table, count: int = 1) -> range:
        """Return the next `count` positions of a table's rows, in the order of creation."""
        last = self.db.execute(select(func.coalesce(func.max(table.c.position), 0))).scalar_one()
        return range(last + 1, last + 1 + count)


class Store:
    """A database of flags. Its transactions are used from any thread; every failure of the database is a `DatabaseError`."""

    def __init__(self, engine: Engine, clock: Clock, log: Logger) -> None:
        self.engine = engine
        self._clock = clock
        self._log = log
        self._told = 0
        self._cell = threading.Lock()
        self._telling = threading.RLock()
        self._watchers: list[Callable[[int], None]] = []
        self._changes: RevisionListener | None = None

    def reading(self) -> AbstractContextManager[Tx]:
        """Give a transaction that sees one state of the database and changes nothing."""
        options: dict[str, Any] = {}
        if self._is_postgresql:
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        return self._transaction(None, options)

    def noting(self) -> AbstractContextManager[Tx]:
        """Give a transaction for what changes no flag: usage, registrations, when a token was seen."""
        return self._transaction(None, {WRITING: True})

    @contextmanager
    def writing(self, actor: Actor | None) -> Iterator[Tx]:
        """Give a transaction that changes flags, after every other writer's; its commit is a new revision, and all are told."""
        with self._transaction(actor, {WRITING: True}) as tx:
            self._wait_for_turn(tx)
            yield tx
            if tx.happened:
                tx.db.execute(insert(events), tx.happened)
            number = self._count(tx.db)
        self.changed(number)

    @contextmanager
    def trying(self, actor: Actor | None) -> Iterator[Tx]:
        """Give a transaction as `writing` does, of which nothing stays: no change, no event, no revision."""
        with self._transaction(actor, {WRITING: True}) as tx:
            self._wait_for_turn(tx)
            yield tx
            tx.db.rollback()

    def _wait_for_turn(self, tx: Tx) -> None:
        """Wait for the writers that came before; on SQLite the transaction's beginning has done so."""
        if self._is_postgresql:
            tx.db.execute(select(func.pg_advisory_xact_lock(WRITERS)))
            tx.now = self._now()

    def revision(self) -> int:
        """Return how many changes were committed, by any server on this database."""
        with self.reading() as tx:
            return read_revision(tx.db)

    def watch(self, changed: Callable[[int], None]) -> None:
        """Call `changed` with the revision, in some thread, after each change, be it made here or by another server."""
        with self._cell:
            self._watchers.append(changed)
            if self._changes is None:
                self._changes = watch_changes(self.engine, self.changed, self._log)

    def changed(self, number: int) -> None:
        """Tell the watchers of a revision, once. When this returns they know it, whichever thread told them."""
        with self._telling:
            self._tell(number)

    def _tell(self, number: int) -> None:
        with self._cell:
            if number <= self._told:
                return
            self._told = number
            watchers = list(self._watchers)
        for watcher in watchers:
            try:
                watcher(number)
            except Exception as error:  # the change is committed: whoever made it is told so
                self._log.error("a change was not taken up", revision=number, error=describe_error(error))
                with self._cell:  # told again with the next change, or when the revision is next read
                    self._told = min(self._told, number - 1)

    def close(self) -> None:
        """Stop watching, and close every connection."""
        if self._changes is not None:
            self._changes.close()
        self.engine.dispose()

    @property
    def _is_postgresql(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def _transaction(self, actor: Actor | None, options: dict[str, Any]) -> Iterator[Tx]:
        """Give a transaction; commit it when the block ends well."""
        try:
            with self.engine.connect().execution_options(**options) as db, db.begin():
                yield Tx(db, self._now(), actor)
        except SQLAlchemyError as error:
            raise DatabaseError(reason(error)) from error

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _count(self, db: Connection) -> int:
        """Add 1 to the revision, tell the other servers when this commits, and return it."""
        db.execute(update(revision).values(number=revision.c.number + 1))
        number = read_revision(db)
        if self._is_postgresql:
            db.execute(select(func.pg_notify(CHANNEL, str(number))))
        return number


def read_revision(db: Connection) -> int:
    """Return the revision that a transaction sees."""
    return int(db.execute(select(revision.c.number)).scalar_one())


def open_store(database: str, clock: Clock, log: Logger) -> Store:
    """Open a database, a URL or the path of an SQLite file, and bring it up to date. Raises `DatabaseError`."""
    engine = make_engine(database)
    try:
        migrate(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        place = f" (the file `{engine.url.database}`)" if engine.dialect.name == "sqlite" else ""
        raise DatabaseError(reason(error) + place) from error
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, clock, log)


def make_engine(database: str) -> Engine:
    """Return SQLAlchemy's engine for a URL or the path of an SQLite file. Raises `DatabaseError` for what is neither."""
    url = database_url(database)
    if url.get_backend_name() == "sqlite":
        return sqlite_engine(url)
    return create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=PATIENCE_S,
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",
        json_serializer=json_text,
        connect_args=postgresql_arguments(url, "flagsvc"),
    )


def database_url(database: str) -> URL:
    """Return what the text means: `postgres://…`, `sqlite:///…`, or a path. Raises `DatabaseError`, without repeating a secret."""
    url = read_url(database)
    if url.get_backend_name() == "sqlite" and is_in_memory(url):
        raise DatabaseError("an SQLite database in memory is not supported: give the path of a file")
    if url.get_backend_name() == "sqlite" and url.query:
        raise DatabaseError(f"an SQLite database takes no options: `{', '.join(sorted(url.query))}` is not understood")
    return url


def is_in_memory(url: URL) -> bool:
    """Return whether an SQLite database is no file: every connection would have one of its own."""
    return url.database in (None, "", MEMORY, f"file:{MEMORY}") or url.query.get("mode") == "memory"


def read_url(database: str) -> URL:
    """Return the URL that a text is, or that of the SQLite file whose path it is. Raises `DatabaseError`."""
    if "://" not in database:
        return URL.create("sqlite", database=str(Path(database).expanduser()))
    scheme = database.partition(":")[0].lower()
    try:
        url = make_url(database)
        return url.set(drivername=DRIVERS[scheme.partition("+")[0]])
    except (ArgumentError, KeyError, ValueError):
        known = "postgresql://user:password@host/name, sqlite:///path or a path"
        raise DatabaseError(f"the database's URL is not understood: expected {known}") from None


def json_text(value: object) -> str:
    """Return a JSON value as it is stored; a number beyond all bounds is null, as JavaScript writes it."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(bounded(value))


def bounded(value: Any) -> Any:
    """Return a JSON value with null for each number that is none or infinite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: bounded(each) for key, each in value.items()}
    return [bounded(each) for each in value] if isinstance(value, list | tuple) else value


def sqlite_engine(url: URL) -> Engine:
    """Return an engine of an SQLite file: WAL, foreign keys on, transactions that begin where they are told to."""
    engine = create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=PATIENCE_S,
        json_serializer=json_text,
        connect_args={"timeout": PATIENCE_S},
    )

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver begins no transactions of its own
        use_log(connection)
        for pragma in ("foreign_keys = ON", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begun(db: Connection) -> None:
        db.exec_driver_sql("BEGIN IMMEDIATE" if db.get_execution_options().get(WRITING) else "BEGIN")

    return engine


def reason(error: SQLAlchemyError) -> str:
    """Return what went wrong with the database, without statement and parameters; it names no secret."""
    if not isinstance(error, DBAPIError) or error.orig is None:
        return f"the database failed: {type(error).__name__}"
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    return f"the database failed: {type(error.orig).__name__}" + (f": {lines[0][:200]}" if lines else "")
