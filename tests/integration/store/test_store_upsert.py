"""Inserting rows that may be there already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.server.store.schema import state
from flagsvc.server.store.store import Store, open_store
from flagsvc.server.store.upsert import chunks, insert_into, upsert
from flagsvc.testing import FakeClock, RecordingLog


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Give an empty database of each kind."""
    store = open_store(database_url, FakeClock(), RecordingLog())
    yield store
    store.close()


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
