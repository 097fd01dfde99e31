"""Hearing of the changes that other servers make on the same database (decision 0018: within a second).

On PostgreSQL a thread listens on a connection of its own; on SQLite it asks four times a second whether the file changed. Whatever
goes wrong, the thread goes on: it connects anew, slower each time, and after that looks at the revision itself, because what was
told meanwhile is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, NullPool, create_engine, select, text
from sqlalchemy.exc import SQLAlchemyError

from flagsvc.core.log import Logger, describe_error
from flagsvc.server.store.connecting import CONNECT_S, postgresql_arguments
from flagsvc.server.store.schema import revision

CHANNEL = "flagsvc_changes"
LOOK_S = 0.25
"""Seconds between two looks: at SQLite's file, and at whether to end."""
LOOKS_BETWEEN_PROBES = 40
"""After so many looks without news the revision is read: a connection may be dead without having ended, and what a watcher
could not take up is told again."""
BACK_OFF_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before the first, second, … new attempt to connect; the last for all that follow."""
CLOSING_S = CONNECT_S + 1.0
"""Seconds that `close` waits at most: as long as an attempt to connect takes."""

Told: TypeAlias = Callable[[int], None]
Pause: TypeAlias = Callable[[float], object]


class RevisionListener:
    """A thread that calls `told` with each revision it hears of. It lives until `close`."""

    def __init__(self, engine: Engine, told: Told, log: Logger) -> None:
        self._engine = create_engine(engine.url, poolclass=NullPool, connect_args=arguments(engine))
        self._told = told
        self._log = log
        self._ending = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="flagsvc changes", daemon=True)

    def start(self) -> None:
        """Begin to hear."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; it is gone within a moment, unless it is just connecting."""
        self._ending.set()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSING_S)
        self._engine.dispose()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._hear()
            except Exception as error:  # a dead thread would mean an old configuration for good
                self._failed(error)

    def _hear(self) -> None:
        hear = HEARING[self._engine.dialect.name]
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
            for number in hear(db, self._ending.wait):
                self._works()
                if number is not None:
                    self._told(number)
                if self._ending.is_set():
                    return

    def _works(self) -> None:
        if self._failures:
            self._log.info("changes of other servers are heard again", attempts=self._failures)
            self._failures = 0

    def _failed(self, error: Exception) -> None:
        pause = BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)]
        if not self._failures and not self._ending.is_set():
            self._log.warn("changes of other servers are not heard", error=_brief(error))
        self._failures += 1
        self._ending.wait(pause)


def arguments(engine: Engine) -> dict[str, Any]:
    """Return the driver's arguments for a connection of its own."""
    if engine.dialect.name == "postgresql":
        return postgresql_arguments(engine.url, "flagsvc changes")
    return {"timeout": CONNECT_S}


def watch_changes(engine: Engine, told: Told, log: Logger) -> RevisionListener:
    """Call `told` with the revision, in a thread, whenever any server changed the database, and once at the beginning."""
    changes = RevisionListener(engine, told, log)
    changes.start()
    return changes


def listen(db: Connection, pause: Pause) -> Iterator[int | None]:
    """Give each revision that PostgreSQL tells of, and None whenever there was silence for a look."""
    db.execute(text(f"LISTEN {CHANNEL}"))
    driver: Any = db.connection.driver_connection
    yield _revision(db)  # after LISTEN: no change falls between the two
    silent = 0
    while True:
        heard = [int(notice.payload) for notice in driver.notifies(timeout=LOOK_S, stop_after=1)]
        silent = 0 if heard else silent + 1
        if heard:
            yield max(heard)
        elif silent % LOOKS_BETWEEN_PROBES == 0:
            yield _revision(db)
        else:
            yield None


def look(db: Connection, pause: Pause) -> Iterator[int | None]:
    """Give the revision of an SQLite file whenever another connection changed the file, and None after a look in vain."""
    seen, silent = None, 0
    while True:
        version = db.exec_driver_sql("PRAGMA data_version").scalar()
        silent = silent + 1 if version == seen else 0
        yield _revision(db) if silent % LOOKS_BETWEEN_PROBES == 0 else None
        seen = version
        pause(LOOK_S)


HEARING: dict[str, Callable[[Connection, Pause], Iterator[int | None]]] = {"postgresql": listen, "sqlite": look}
"""Kind of database → how changes are heard of."""


def _revision(db: Connection) -> int:
    return int(db.execute(select(revision.c.number)).scalar_one())


def _brief(error: Exception) -> str:
    """Return what went wrong, without the address of the database that drivers like to repeat."""
    cause = getattr(error, "orig", None)
    return type(cause or error).__name__ if isinstance(error, SQLAlchemyError) else describe_error(error)
