"""Notices the changes that other servers make in the same database (decision 0022).

On PostgreSQL a thread listens on its own connection, and reads the revision every second because poolers pass no notifications on;
on SQLite it checks four times a second whether the file changed. After an error the thread connects again, with a growing delay.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from sqlalchemy import select as query
from sqlalchemy.exc import SQLAlchemyError

from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger, describe_error
from flagsvc.server.store.connections import CONNECT_TIMEOUT_S
from flagsvc.server.store.schema import revision
from flagsvc.server.store.sqlite_file import is_outdated, listen_to_connections

CHANNEL = "flagsvc_changes"
POLL_S = 0.25
"""Seconds between two polls of SQLite's file."""
READ_S = 1.0
"""The most seconds between two reads of the revision on PostgreSQL."""
POLLS_BETWEEN_READS = 40
"""Polls of SQLite's file without a change after which the revision is read: a watcher that failed gets its revision again."""
BACKOFF_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before the first, second, … new attempt to connect; the last value applies to all further attempts."""
CLOSE_TIMEOUT_S = CONNECT_TIMEOUT_S + 1.0
"""The most seconds that `close` waits: an attempt to connect may take that long."""

IDENTITY = "SELECT pg_postmaster_start_time(), oid, current_schema() FROM pg_database WHERE datname = current_database()"
"""Gives which server, database and schema a connection leads to, also through a pooler."""

OnRevision: TypeAlias = Callable[[int], None]
Wait: TypeAlias = Callable[..., object]
"""Waits for some seconds, or until a file descriptor that is given as well has something to read."""


class Closing:
    """Whether a thread is to end. Waiting for anything else ends as soon as it is."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self.is_set = False

    def set(self) -> None:
        self.is_set = True
        self._there.close()

    def wait(self, seconds: float, *files: int) -> None:
        """Wait for some seconds, until one of these file descriptors has something to read, or until the thread is to end."""
        poll = select.poll()
        for each in (self._here.fileno(), *files):
            poll.register(each, select.POLLIN)
        poll.poll(seconds * 1000)

    def discard(self) -> None:
        """Give the file descriptors back, once nothing waits any more."""
        self._here.close()


class RevisionListener:
    """A thread that calls `on_revision` with each new revision. It runs until `close`."""

    def __init__(self, engine: Engine, listen: str | None, on_revision: OnRevision, log: Logger) -> None:
        self._engine = listening_engine(engine, listen)
        self._listen = partial(LISTENERS[engine.dialect.name], engine if listen else None)
        self._on_revision = on_revision
        self._log = log
        self._closing = Closing()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="flagsvc changes", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread and wait for it, at most `CLOSE_TIMEOUT_S`."""
        self._closing.set()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSE_TIMEOUT_S)
            self._closing.discard()
        self._engine.dispose()

    def _run(self) -> None:
        while not self._closing.is_set:
            try:
                self._follow()
            except Exception as error:  # without this thread the configuration would stay old
                self._log_failure_and_wait(error)

    def _follow(self) -> None:
        with self._engine.connect() as db:
            for number in self._listen(db, self._closing.wait):
                self._log_recovery()
                if number is not None:
                    self._on_revision(number)
                if self._closing.is_set:
                    return

    def _log_recovery(self) -> None:
        if self._failures:
            self._log.warn("changes of other servers are noticed again", attempts=self._failures)
            self._failures = 0

    def _log_failure_and_wait(self, error: Exception) -> None:
        wait = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
        if not self._failures and not self._closing.is_set:
            self._log.warn("changes of other servers are not noticed", error=_describe_error(error))
        self._failures += 1
        self._closing.wait(wait)


def listening_engine(engine: Engine, listen: str | None) -> Engine:
    """Return an engine for the listener's own connection: at its own URL, else at that of the database."""
    if engine.dialect.name == "postgresql":
        from flagsvc.server.store.postgresql import make_postgresql_engine, read_url  # with the driver

        url = read_url(listen) if listen else engine.url
        return make_postgresql_engine(url, "flagsvc changes", poolclass=NullPool)
    arguments = {"timeout": CONNECT_TIMEOUT_S}
    own = create_engine(engine.url, poolclass=NullPool, connect_args=arguments, isolation_level="AUTOCOMMIT")
    listen_to_connections(own)
    return own


def watch_changes(engine: Engine, listen: str | None, on_revision: OnRevision, log: Logger) -> RevisionListener:
    """Call `on_revision` from a thread: once at the beginning, then after each change by any server."""
    changes = RevisionListener(engine, listen, on_revision, log)
    changes.start()
    return changes


def listen_postgresql(served: Engine | None, db: Connection, wait: Wait) -> Iterator[int | None]:
    """Yield the revision after each notification and each second.

    `served` is the database whose changes are to be noticed, where `db` has a URL of its own. A notification only says that the
    revision is to be read: servers with another schema of the database send theirs, too. A standby takes no LISTEN, so its revision
    is only read, and this ends when it is promoted. Raises `DatabaseError` if `db` is another database.
    """
    from flagsvc.server.store.postgresql import is_pooled, is_standby  # with the driver, which a file does not need

    if served is not None:
        require_same(served, db)
    driver: Any = db.connection.driver_connection
    standby = is_standby(driver)
    if not standby and not is_pooled(driver):
        driver.execute(f"LISTEN {CHANNEL}")
    # the first read comes after LISTEN, so that no change is missed in between
    while not standby or is_standby(driver):
        yield _read_revision_alone(db)
        wait(READ_S, driver.fileno())
        list(driver.notifies(timeout=0))  # they say no more than that there is something to read


def poll_sqlite(served: Engine | None, db: Connection, wait: Wait) -> Iterator[int | None]:
    """Yield the revision of an SQLite file when another connection changed the file, and None after a poll without a change.

    It ends when it takes a new connection to notice changes.
    """
    seen, polls = None, 0
    while not is_outdated(db.connection.driver_connection):
        version = db.exec_driver_sql("PRAGMA data_version").scalar()
        polls = polls + 1 if version == seen else 0
        yield _read_revision(db) if polls % POLLS_BETWEEN_READS == 0 else None
        seen = version
        wait(POLL_S)


LISTENERS: dict[str, Callable[[Engine | None, Connection, Wait], Iterator[int | None]]] = {
    "postgresql": listen_postgresql,
    "sqlite": poll_sqlite,
}
"""Dialect → the generator that notices changes."""


def require_same(served: Engine, db: Connection) -> None:
    """Raise `DatabaseError` unless the URL to listen at leads to the database that is served."""
    with served.connect() as other, other.begin():
        wanted = other.execute(text(IDENTITY)).one()
    with db.begin():
        found = db.execute(text(IDENTITY)).one()
    if found != wanted:
        raise DatabaseError("the URL to listen at leads to another database")


def _read_revision_alone(db: Connection) -> int:
    """Return the revision, and leave no transaction open."""
    with db.begin():
        return _read_revision(db)


def _read_revision(db: Connection) -> int:
    return int(db.execute(query(revision.c.number)).scalar_one())


def _describe_error(error: Exception) -> str:
    """Return what went wrong, without the database's address, which messages of drivers often repeat."""
    cause = getattr(error, "orig", None)
    return type(cause or error).__name__ if isinstance(error, SQLAlchemyError) else describe_error(error)
