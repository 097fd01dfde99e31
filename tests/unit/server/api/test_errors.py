"""Which database errors are an outage, and which are a programming error."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy.exc import InterfaceError, OperationalError, TimeoutError

from flagsvc.core.errors import DatabaseError
from flagsvc.server.api.errors import is_away


def caused_by(cause: Exception) -> DatabaseError:
    """Return a `DatabaseError` with this cause."""
    error = DatabaseError("the database failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("code", "away"),
    [
        (sqlite3.SQLITE_BUSY, True),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, True),
        (sqlite3.SQLITE_LOCKED, True),
        (sqlite3.SQLITE_FULL, True),
        (sqlite3.SQLITE_IOERR_WRITE, True),
        (sqlite3.SQLITE_CANTOPEN, True),
        (sqlite3.SQLITE_READONLY_DBMOVED, True),
        (sqlite3.SQLITE_ERROR, False),
        (sqlite3.SQLITE_TOOBIG, False),
        (sqlite3.SQLITE_CORRUPT, False),
        (None, False),
    ],
)
def test_failures_of_sqlite(code: int | None, away: bool) -> None:
    """A file that cannot be used is an outage. A wrong statement is not."""
    failure = sqlite3.OperationalError("x")
    if code is not None:
        failure.sqlite_errorcode = code
    assert is_away(caused_by(OperationalError("x", {}, failure))) is away


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_failures_of_another_database(kind: type[OperationalError | InterfaceError]) -> None:
    """An operational or interface error of the driver is an outage, and so is a timeout of the connection pool."""
    assert is_away(caused_by(kind("x", {}, Exception("gone"))))
    assert is_away(caused_by(TimeoutError()))
    assert not is_away(caused_by(ValueError()))
