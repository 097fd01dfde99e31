"""Notices the changes that other servers make in the same database (decision 0018).

On PostgreSQL a thread listens on its own connection; on SQLite it checks four times a second whether the file changed. After an
error the thread connects again, with a growing delay. It then reads the revision, because notifications sent meanwhile are lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, NullPool, create_engine, select, text
from sqlalchemy.exc import SQLAlchemyError

from flagsvc.core.log import Logger, describe_error
from flagsvc.server.store.connections import CONNECT_TIMEOUT_S, postgresql_arguments
from flagsvc.server.store.schema import revision

CHANNEL = "flagsvc_changes"
POLL_S = 0.25
"""Seconds between two polls of SQLite's file, and between two checks of whether to end."""
POLLS_BETWEEN_READS = 40
"""Polls without a change after which the revision is read. A connection may be dead without an error, and a watcher that failed
gets its revision again."""
BACKOFF_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before the first, second, … new attempt to connect; the last value applies to all further attempts."""
CLOSE_TIMEOUT_S = CONNECT_TIMEOUT_S + 1.0
"""The most seconds that `close` waits: an attempt to connect may take that long."""

OnRevision: TypeAlias = Callable[[int], None]
Wait: TypeAlias = Callable[[float], object]


class RevisionListener:
    """A thread that calls `on_revision` with each new revision. It runs until `close`."""

    def __init__(self, engine: Engine, on_revision: OnRevision, log: Logger) -> None:
        self._engine = create_engine(engine.url, poolclass=NullPool, connect_args=connection_arguments(engine))
        self._on_revision = on_revision
        self._log = log
        self._closing = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="flagsvc changes", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread and wait for it, at most `CLOSE_TIMEOUT_S`."""
        self._closing.set()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSE_TIMEOUT_S)
        self._engine.dispose()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._listen()
            except Exception as error:  # without this thread the configuration would stay old
                self._log_failure_and_wait(error)

    def _listen(self) -> None:
        listen = LISTENERS[self._engine.dialect.name]
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
            for number in listen(db, self._closing.wait):
                self._log_recovery()
                if number is not None:
                    self._on_revision(number)
                if self._closing.is_set():
                    return

    def _log_recovery(self) -> None:
        if self._failures:
            self._log.info("changes of other servers are noticed again", attempts=self._failures)
            self._failures = 0

    def _log_failure_and_wait(self, error: Exception) -> None:
        wait = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
        if not self._failures and not self._closing.is_set():
            self._log.warn("changes of other servers are not noticed", error=_describe_error(error))
        self._failures += 1
        self._closing.wait(wait)


def connection_arguments(engine: Engine) -> dict[str, Any]:
    """Return the driver's arguments for the listener's own connection."""
    if engine.dialect.name == "postgresql":
        return postgresql_arguments(engine.url, "flagsvc changes")
    return {"timeout": CONNECT_TIMEOUT_S}


def watch_changes(engine: Engine, on_revision: OnRevision, log: Logger) -> RevisionListener:
    """Call `on_revision` from a thread: once at the beginning, then after each change by any server."""
    changes = RevisionListener(engine, on_revision, log)
    changes.start()
    return changes


def listen_postgresql(db: Connection, wait: Wait) -> Iterator[int | None]:
    """Yield each revision that PostgreSQL notifies of, and None after a poll without a notification."""
    db.execute(text(f"LISTEN {CHANNEL}"))
    driver: Any = db.connection.driver_connection
    yield _read_revision(db)  # after LISTEN, so that no change is missed in between
    polls = 0
    while True:
        revisions = [int(notice.payload) for notice in driver.notifies(timeout=POLL_S, stop_after=1)]
        polls = 0 if revisions else polls + 1
        if revisions:
            yield max(revisions)
        elif polls % POLLS_BETWEEN_READS == 0:
            yield _read_revision(db)
        else:
            yield None


def poll_sqlite(db: Connection, wait: Wait) -> Iterator[int | None]:
    """Yield the revision of an SQLite file when another connection changed the file, and None after a poll without a change."""
    seen, polls = None, 0
    while True:
        version = db.exec_driver_sql("PRAGMA data_version").scalar()
        polls = polls + 1 if version == seen else 0
        yield _read_revision(db) if polls % POLLS_BETWEEN_READS == 0 else None
        seen = version
        wait(POLL_S)


LISTENERS: dict[str, Callable[[Connection, Wait], Iterator[int | None]]] = {
    "postgresql": listen_postgresql,
    "sqlite": poll_sqlite,
}
"""Dialect → the generator that notices changes."""


def _read_revision(db: Connection) -> int:
    return int(db.execute(select(revision.c.number)).scalar_one())


def _describe_error(error: Exception) -> str:
    """Return what went wrong, without the database's address, which messages of drivers often repeat."""
    cause = getattr(error, "orig", None)
    return type(cause or error).__name__ if isinstance(error, SQLAlchemyError) else describe_error(error)
