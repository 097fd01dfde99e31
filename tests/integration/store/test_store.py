"""The database of flags: which databases are allowed, and the moment of a transaction.

Inserting rows that may be there already.
Settings of connections: a lost PostgreSQL server is noticed, and a locked SQLite file is waited for.
What a store tells about its transactions. The statements of traced work are spans: their kind, never their text or values.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from random import Random
from typing import Any

import pytest
from sqlalchemy import delete, insert, literal, select, text

from flagsvc.core.errors import DatabaseError
from flagsvc.core.tracing import Tracer, running
from flagsvc.server.store.connections import LOCK_TIMEOUT_S, RETRY_S, enable_wal
from flagsvc.server.store.engines import database_url, load_json, make_engine
from flagsvc.server.store.postgresql import arguments, read_url
from flagsvc.server.store.schema import events, segments, state
from flagsvc.server.store.store import Store, open_store
from flagsvc.server.store.traced_statements import operation_of, trace_statements
from flagsvc.server.store.upsert import chunks, insert_into, upsert
from flagsvc.testing import FakeClock, RecordingLog


@pytest.mark.parametrize(
    "database", [":memory:", "sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:", "sqlite:///file:x?mode=memory"]
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


def test_numbers_beyond_all_bounds_are_stored_as_null(store: Store) -> None:
    """JSON has no infinity: PostgreSQL would refuse it, and SQLite would store what no reader accepts."""
    with store.writing(None) as tx:
        tx.record_event("test", data={"a": [float("inf"), 1.5], "b": float("nan")})
    with store.reading() as tx:
        assert tx.db.execute(select(events.c.data)).scalar_one() == {"a": [None, 1.5], "b": None}


@pytest.mark.parametrize(
    "text", ['{"a": [1, -0.0, 1e5, null, true]}', "18446744073709551616", '"\\ud800"', "1e400", "[]", '"\\u0000"']
)
def test_stored_json_is_read_as_the_plain_parser_reads_it(text: str) -> None:
    """Half a surrogate pair and numbers beyond all bounds, which the fast parser refuses, are read, too."""
    assert repr(load_json(text)) == repr(load_json(text.encode())) == repr(json.loads(text))


def test_the_number_of_a_row_that_is_gone_is_not_given_again(store: Store) -> None:
    """A new segment never has the number of a deleted segment."""
    numbers = []
    for _ in range(2):
        with store.writing(None) as tx:
            row = {"name": "s", "constraints": [], "created_at": tx.now}
            numbers.append(tx.db.execute(insert(segments).values(row).returning(segments.c.id)).scalar_one())
            tx.db.execute(delete(segments))
    assert numbers[0] != numbers[1]


def values(store: Store) -> dict[str, Any]:
    """Return what is stored under the keys of these tests."""
    with store.reading() as tx:
        return {row.key: row.value for row in tx.db.execute(select(state)) if row.key.startswith("test ")}


@pytest.mark.parametrize(("changes", "second"), [(("value",), 2), ((), 1)])
def test_rows_that_are_there(store: Store, changes: tuple[str, ...], second: int) -> None:
    """New rows are inserted; in existing rows only the named columns change."""
    with store.recording() as tx:
        upsert(tx, state, [{"key": "test a", "value": 1}], changes)
        upsert(tx, state, [{"key": "test a", "value": 2}, {"key": "test b", "value": 3}], changes)
        upsert(tx, state, [], changes)
    assert values(store) == {"test a": second, "test b": 3}


def test_changes_by_an_expression(store: Store) -> None:
    """A column can get the value of an expression on the new row."""
    with store.recording() as tx:
        key = insert_into(tx, state).excluded.key
        upsert(tx, state, [{"key": "test a", "value": 1}], ())
        upsert(tx, state, [{"key": "test a", "value": 2}], {"key": key + "!"})
    assert values(store) == {"test a!": 1}


def test_chunks() -> None:
    """The chunks hold every value once, in order, and none is too long."""
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(chunks([])) == []


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


def test_figures(database_url: str) -> None:
    """Commits count by kind, with the wait of each change. What is rolled back is none; what the database fails is an error."""
    store = open_store(database_url, FakeClock(), RecordingLog())
    try:
        before = dict(store.figures.commits)
        with store.writing(None), pytest.raises(DatabaseError), store.reading() as tx:
            tx.db.execute(text("SELECT nothing FROM nowhere"))
        with store.recording():
            pass
        with store.dry_run(None):
            pass
        with pytest.raises(KeyError), store.writing(None):
            raise KeyError
        grown = {kind: number - before[kind] for kind, number in store.figures.commits.items()}
        assert grown == {"change": 1, "record": 1}
        assert (sum(store.figures.turns.counts), store.figures.errors, store.figures.waiting) == (3, 1, 0)
        with store.reading():
            assert store.pool.checkedout() == 1 <= store.pool.size()
    finally:
        store.close()


def test_the_statements_of_a_transaction(store: Store) -> None:
    """Each statement within traced work has a span within the span of its transaction. A failed statement has the kind of its
    failure.

    Without a present span there is none.
    """
    tracer = Tracer(Random(1), 1.0, follows_parent=True, room=100, batch=100, on_batch=lambda: None)
    trace_statements(store.engine)
    with store.reading() as tx:
        tx.db.execute(select(literal("marked")))
    assert tracer.take() == []
    with running(tracer.begin("work")), store.reading() as tx:
        tx.db.execute(select(literal("marked")))
    system = store.engine.dialect.name
    statement, transaction, work = tracer.take()[-3:]
    assert (statement.name, statement.parent, transaction.parent) == (f"SELECT {system}", transaction.id, work.id)
    assert statement.attributes == {"db.system.name": system, "db.operation.name": "SELECT"} and not statement.error

    def fail() -> None:
        with running(tracer.begin("work")), store.reading() as tx:
            tx.db.execute(text("SELECT marked FROM nowhere"))

    with pytest.raises(DatabaseError):
        fail()
    failed = next(span for span in tracer.take() if span.name == f"SELECT {system}")
    assert failed.error and "marked" not in str(vars(failed))


@pytest.mark.parametrize(
    ("statement", "operation"),
    [(" select 1", "SELECT"), ("INSERT INTO a", "INSERT"), ("WITH a AS", "WITH"), ("PRAGMA x", "OTHER"), ("", "OTHER")],
)
def test_the_kind_of_a_statement(statement: str, operation: str) -> None:
    """The kind is one of a few words."""
    assert operation_of(statement) == operation
