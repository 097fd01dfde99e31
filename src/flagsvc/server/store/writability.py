"""Whether the database takes changes: what the last failed change or probe found, said once for each change of it (decision 0023).

A change is always tried, also after an earlier one has failed. Only a probe finds that the database can be written again.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Engine, NullPool, text, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from flagsvc.core.clock import Clock
from flagsvc.core.errors import UnwritableError
from flagsvc.core.log import Logger, Throttle
from flagsvc.server.store.connections import PRIMARY_CODE_MASK, WRITING
from flagsvc.server.store.engines import engine_of
from flagsvc.server.store.schema import METADATA, revision


class Obstacle(NamedTuple):
    """Why a database cannot be written while it can be read: a word for metrics and readiness, what is wrong, and what to do."""

    word: str
    why: str
    remedy: str


STANDBY = Obstacle(
    "read-only",
    "it is a standby, or takes no changes (default_transaction_read_only)",
    "let the database's URL name the primary, or all hosts with target_session_attrs=read-write; the server also goes on by itself "
    "once this one takes changes",
)
RIGHTS = Obstacle(
    "rights",
    "its role has no right to change every table",
    "GRANT SELECT, INSERT, UPDATE, DELETE on all tables and USAGE, SELECT, UPDATE on all sequences of the schema to the role",
)
FILE = Obstacle(
    "file",
    "this user may not write the file and its folder, or they are on a read-only file system",
    "let this user own the file and its folder, which SQLite needs for its log, or mount them writable",
)
FULL = Obstacle("full", "the disk is full", "make room: the server goes on by itself")
DISK = Obstacle("disk", "the disk does not take what is written", "look at the disk, its quota and the limit on the size of files")
MOVED = Obstacle(
    "moved",
    "its file, or the log beside it, was removed or replaced while the server runs",
    "stop the server, put the right file in place, and start it again; `flagsvc server restore` replaces data while it runs",
)

BY_SQLSTATE = {"25006": STANDBY, "42501": RIGHTS, "53100": FULL}
"""PostgreSQL's code of an error → the reason."""
BY_SQLITE_CODE = {
    sqlite3.SQLITE_READONLY_DBMOVED: MOVED,
    sqlite3.SQLITE_READONLY: FILE,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR_WRITE: DISK,
    sqlite3.SQLITE_IOERR_FSYNC: DISK,
    sqlite3.SQLITE_IOERR_DIR_FSYNC: DISK,
    sqlite3.SQLITE_IOERR_TRUNCATE: DISK,
    sqlite3.SQLITE_IOERR_SHMSIZE: DISK,
}
"""SQLite's code of an error, extended or primary → the reason."""


def describe_database_error(error: SQLAlchemyError) -> str:
    """Return what went wrong with the database, without the statement, its parameters, and secrets."""
    if not isinstance(error, DBAPIError) or error.orig is None:
        return f"the database failed: {type(error).__name__}"
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    return f"the database failed: {type(error.orig).__name__}" + (f": {lines[0][:200]}" if lines else "")


def find_obstacle(error: SQLAlchemyError) -> Obstacle | None:
    """Return why a transaction could not write; None for any other error."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        return BY_SQLITE_CODE.get(code) or BY_SQLITE_CODE.get(code & PRIMARY_CODE_MASK)
    return BY_SQLSTATE.get(str(getattr(cause, "sqlstate", "")))


PROBE_S = 1.0
"""Seconds between two probes while the database cannot be written, and between two looks at an SQLite file."""
PROBES_BETWEEN_TRIES = 15
"""Looks after which a database that can be written is tried, so that readiness knows before somebody changes a flag."""
LOG_PAUSE_S = 60.0
"""Seconds between two lines about the same obstacle. A disk that is nearly full takes small changes and no large ones."""
ALONE: Mapping[str, Any] = {"poolclass": NullPool}
PROBE_WAIT_S = 1
"""The most seconds that a probe waits for a writer. One that waits longer finds nothing out."""
LACKS_RIGHTS = text("""
SELECT EXISTS (
  SELECT FROM pg_class
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relname = ANY(:names)
    AND NOT (has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')))
""")
NOT_WRITTEN = "the database cannot be written: reads go on, and every change is refused"


class Writability:
    """The present obstacle to changes; None while there is none. Safe to use from any thread.

    `place` says in the log which database it is.
    """

    def __init__(self, place: str, clock: Clock) -> None:
        self.obstacle: Obstacle | None = None
        self._place = place
        self._throttle = Throttle(clock, LOG_PAUSE_S)
        self._lock = threading.Lock()
        self._log: Logger | None = None
        self._told = False

    def announce(self, log: Logger) -> None:
        """Write changes into a log from now on. A command does not: its error says the same."""
        self._log = log

    def note(self, obstacle: Obstacle | None) -> None:
        """Note what a change or a probe found."""
        with self._lock:
            before, self.obstacle = self.obstacle, obstacle
            if self._log is None or before == obstacle:
                return
            if obstacle is None:
                write = self._log.info if self._told else self._log.debug
                write("the database can be written again", database=self._place)
                return
            self._told = self._throttle.allows(obstacle.word)
            write = self._log.warn if self._told else self._log.debug
            write(NOT_WRITTEN, database=self._place, reason=obstacle.why, todo=obstacle.remedy)


class WritabilityThread:
    """A thread that probes, until `close`: each second while there is an obstacle, seldom without one."""

    def __init__(self, look: Callable[[], None], probe: Callable[[bool], None], writability: Writability) -> None:
        """`look` notices a moved file, at little cost; `probe` tries the database and notes what it finds. Neither raises."""
        self._look = look
        self._probe = probe
        self._writability = writability
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flagsvc writability", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        looks = 0
        while not self._closing.wait(PROBE_S):
            looks += 1
            self._look()
            if self._writability.obstacle is not None:
                self._probe(True)
            elif looks % PROBES_BETWEEN_TRIES == 0:
                self._probe(False)

    def close(self) -> None:
        """End the thread, and wait for it."""
        self._closing.set()
        self._thread.join()


def trouble(log: Logger, error: Exception) -> Callable[..., Any]:
    """Return the function that logs a failure of a background task: at level debug if `Writability` has logged why."""
    return log.debug if isinstance(error, UnwritableError) else log.warn


def find_present_obstacle(engine: Engine, *, commit: bool) -> Obstacle | None:
    """Try to write over a new connection, with `commit` up to the disk, and return what is in the way. Raises SQLAlchemyError."""
    own = engine_of(engine.url, ALONE, PROBE_WAIT_S)
    try:
        with own.connect().execution_options(**{WRITING: True}) as db, db.begin():
            if db.dialect.name == "postgresql":
                db.exec_driver_sql(f"SET LOCAL lock_timeout = '{PROBE_WAIT_S}s'")
                if db.execute(LACKS_RIGHTS, {"names": list(METADATA.tables)}).scalar():
                    return RIGHTS
            db.execute(update(revision).values(number=revision.c.number))
            if not commit:
                db.rollback()
    except SQLAlchemyError as error:
        if (obstacle := find_obstacle(error)) is None:
            raise
        return obstacle
    finally:
        own.dispose()
    return None
