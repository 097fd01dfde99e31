"""Settings of connections: a lost PostgreSQL server is noticed, and a locked SQLite file is waited for."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from sqlalchemy import text

from flagsvc.server.store.connections import LOCK_TIMEOUT_S, RETRY_S, enable_wal
from flagsvc.server.store.engines import make_engine
from flagsvc.server.store.postgresql import arguments, read_url

KEEPING = {"connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count"}


def test_every_connection_is_watched() -> None:
    """A connection has bounds, texts in UTF-8 and no prepared statements, and sends no options that poolers refuse."""
    found = arguments(read_url("postgresql://me@db/flags"), "x")
    assert set(found) == KEEPING | {"application_name", "client_encoding", "prepare_threshold"}
    assert found["prepare_threshold"] is None


def test_what_the_url_says_wins() -> None:
    """A setting of the URL is kept, but for those that the program relies on."""
    url = read_url("postgresql://me@db/flags?connect_timeout=2&application_name=mine&client_encoding=LATIN1")
    found = arguments(url, "flagsvc")
    assert not {"connect_timeout", "application_name"} & set(found)
    assert found["client_encoding"] == "UTF8"


def test_transactions_are_set_up(postgresql_url: str) -> None:
    """A transaction has a lock timeout and READ COMMITTED; the options of the URL hold for the rest."""
    engine = make_engine(postgresql_url + "?options=-c%20work_mem%3D1MB")
    with engine.connect() as db:
        shown = [db.execute(text(f"SHOW {name}")).scalar() for name in ("lock_timeout", "work_mem")]
        assert shown == ["30s", "1MB"]
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
