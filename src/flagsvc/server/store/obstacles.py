"""Why a database cannot be written while it can be read: a row for each reason, with what to do (decision 0068)."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from flagsvc.server.store.connections import PRIMARY_CODE_MASK


class Obstacle(NamedTuple):
    """A reason: a word for metrics and readiness, what is wrong, and what an operator can do."""

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
DISK = Obstacle(
    "disk", "the disk does not take what is written", "look at the disk, its quota and the limit on the size of files"
)
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
