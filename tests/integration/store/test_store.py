"""The database of flags: which databases are allowed, and the moment of a transaction."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from sqlalchemy import delete, insert, select

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.engines import database_url, load_json
from flagsvc.server.store.schema import events, segments
from flagsvc.server.store.store import open_store
from flagsvc.testing import FakeClock, RecordingLog


@pytest.mark.parametrize(
    "database",
    [":memory:", "sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:", "sqlite:///file:x?mode=memory"],
)
def test_a_database_in_memory_is_refused(database: str) -> None:
    """Every connection would have its own database; the error says what to give instead."""
    with pytest.raises(DatabaseError, match="in memory is not supported: give the path of a file"):
        database_url(database)


@pytest.mark.parametrize("database", ["flags.db", "sqlite:///flags.db", "sqlite:////var/flags.db", "postgres:///flags"])
def test_what_is_kept_is_taken(database: str) -> None:
    """Files and servers are accepted."""
    assert str(database_url(database).database).endswith("flags" if "postgres" in database else "flags.db")


def test_the_moment_of_a_writer_is_when_its_turn_came(database_url: str) -> None:
    """Moments are in the order of the commits: the time in the queue does not count."""
    clock = FakeClock(1000.0)
    store = open_store(database_url, clock, RecordingLog())
    begun, moments = threading.Event(), []

    def second() -> None:
        begun.set()
        with store.writing(None) as tx:
            moments.append(tx.now.timestamp())

    try:
        thread = threading.Thread(target=second)
        with store.writing(None):
            thread.start()
            assert begun.wait(10)
            thread.join(0.3)  # it waits in line
            asyncio.run(clock.advance(500))
        thread.join(30)
        assert moments == [1500.0]
    finally:
        store.close()


def test_options_of_an_sqlite_address_are_refused() -> None:
    """`mode=ro` would be ignored, so it is an error, and nothing is opened."""
    with pytest.raises(DatabaseError, match="takes no options: `mode` is not understood"):
        database_url("sqlite:////var/flags.db?mode=ro")


def test_a_file_that_cannot_be_opened_is_named() -> None:
    """The message says which file it was."""
    with pytest.raises(DatabaseError, match=r"unable to open database file \(the file `/proc/x.db`\)"):
        open_store("/proc/x.db", FakeClock(), RecordingLog())


def test_numbers_beyond_all_bounds_are_stored_as_null(database_url: str) -> None:
    """JSON has no infinity: PostgreSQL would refuse it, and SQLite would store what no reader accepts."""
    store = open_store(database_url, FakeClock(), RecordingLog())
    try:
        with store.writing(None) as tx:
            tx.record_event("test", data={"a": [float("inf"), 1.5], "b": float("nan")})
        with store.reading() as tx:
            assert tx.db.execute(select(events.c.data)).scalar_one() == {"a": [None, 1.5], "b": None}
    finally:
        store.close()


@pytest.mark.parametrize(
    "text", ['{"a": [1, -0.0, 1e5, null, true]}', "18446744073709551616", '"\\ud800"', "1e400", "[]", '"\\u0000"']
)
def test_stored_json_is_read_as_the_plain_parser_reads_it(text: str) -> None:
    """Half a surrogate pair and numbers beyond all bounds, which the fast parser refuses, are read, too."""
    assert repr(load_json(text)) == repr(load_json(text.encode())) == repr(json.loads(text))


def test_the_number_of_a_row_that_is_gone_is_not_given_again(database_url: str) -> None:
    """A new segment is never taken for one that was deleted."""
    store = open_store(database_url, FakeClock(), RecordingLog())
    try:
        numbers = []
        for _ in range(2):
            with store.writing(None) as tx:
                row = {"name": "s", "constraints": [], "created_at": tx.now}
                numbers.append(tx.db.execute(insert(segments).values(row).returning(segments.c.id)).scalar_one())
                tx.db.execute(delete(segments))
        assert numbers[0] != numbers[1]
    finally:
        store.close()
