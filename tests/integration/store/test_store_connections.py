"""Settings of connections: a lost PostgreSQL server is noticed, and a locked SQLite file is waited for."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from flagsvc.server.store.connections import (
    LOCK_TIMEOUT_S,
    POSTGRESQL_OPTIONS,
    RETRY_S,
    enable_wal,
    postgresql_arguments,
)
from flagsvc.server.store.revision_listener import connection_arguments
from flagsvc.server.store.store import make_engine

KEEPING = {"connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count"}


def test_every_connection_is_watched() -> None:
    """The pool's connections and the listener's connection have the same bounds."""
    engine = make_engine("postgresql://me@db/flags")
    found = connection_arguments(engine)
    assert set(found) == KEEPING | {"application_name", "options"}
    assert found | {"application_name": "x"} == postgresql_arguments(engine.url, "x")


@pytest.mark.parametrize("query", ["connect_timeout=2&application_name=mine", "options=-c%20search_path%3Dours"])
def test_what_the_url_says_wins(query: str) -> None:
    """A setting of the URL is kept; the URL's options come after ours."""
    found = postgresql_arguments(make_url(f"postgresql+psycopg://me@db/flags?{query}"), "flagsvc")
    options = "" if "options" not in query else " -c search_path=ours"
    assert found["options"] == POSTGRESQL_OPTIONS + options
    assert ("connect_timeout" in found) is ("connect_timeout" not in query)


def test_sessions_are_set_up(postgresql_url: str) -> None:
    """A session has a lock timeout and READ COMMITTED, despite the database's own settings."""
    engine = make_engine(postgresql_url + ("&" if "?" in postgresql_url else "?") + "options=-c%20work_mem%3D1MB")
    with engine.connect() as db:
        shown = [db.execute(text(f"SHOW {name}")).scalar() for name in ("lock_timeout", "work_mem")]
        assert shown == ["30s", "1MB"]
        assert db.execute(text("SHOW transaction_isolation")).scalar() == "read committed"
    engine.dispose()


def test_the_databases_isolation_is_not_taken_over(postgresql_url: str) -> None:
    """A database with another default isolation level does not change the isolation of writers."""
    engine = make_engine(postgresql_url)
    name = engine.url.database
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        db.execute(text(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'"))
    engine.dispose()
    with engine.connect() as db:
        assert db.execute(text("SHOW transaction_isolation")).scalar() == "read committed"
    engine.dispose()


class Refusing:
    """A connection to an SQLite file that fails so many times with this error."""

    def __init__(self, times: int, code: int) -> None:
        self.times = times
        self.code = code

    def execute(self, statement: str) -> None:
        """Raise, or execute the statement."""
        if self.times:
            self.times -= 1
            error = sqlite3.OperationalError("no")
            error.sqlite_errorcode = self.code
            raise error


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY])
def test_a_file_that_is_being_changed_is_waited_for(code: int) -> None:
    """SQLite fails immediately while another connection switches to WAL: the switch is retried, as long as a writer waits."""
    slept: list[float] = []
    connection: Any = Refusing(3, code)
    enable_wal(connection, slept.append)
    assert slept == [RETRY_S] * 3
    with pytest.raises(sqlite3.OperationalError):
        enable_wal(Refusing(1_000_000, code), slept.append)  # type: ignore[arg-type]
    assert sum(slept) == pytest.approx(LOCK_TIMEOUT_S, abs=0.2)


def test_a_file_that_cannot_be_used_is_not_waited_for() -> None:
    """Any other error is raised immediately."""
    slept: list[float] = []
    with pytest.raises(sqlite3.OperationalError):
        enable_wal(Refusing(1, sqlite3.SQLITE_READONLY), slept.append)  # type: ignore[arg-type]
    assert slept == []
