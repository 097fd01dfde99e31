"""Old data is deleted: counts once an hour, events once a day."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store import cleanup
from flagsvc.server.store.cleanup import Cleanup
from flagsvc.server.store.schema import events, usage
from flagsvc.server.store.store import Store, Tx, open_store
from flagsvc.testing import FakeClock, RecordingLog

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class CleanedStore:
    """A store, its clock, and the cleanup."""

    def __init__(self, url: str) -> None:
        self.clock, self.log = FakeClock(), RecordingLog()
        self.store: Store = open_store(url, self.clock, self.log)
        self.tidying = Cleanup(self.store, self.clock, self.log)

    def add(self, name: str, age: timedelta) -> None:
        """Add a count and an event of some age."""
        with self.store.recording() as tx:
            row = {"feature": name, "app_name": "a", "environment": "e", "hour": tx.now - age}
            tx.db.execute(insert(usage).values(row))
            tx.db.execute(insert(events).values(type=name, created_at=tx.now - age, created_by="me"))

    def left(self) -> tuple[list[str], list[str]]:
        """Return the names of the remaining counts and events."""
        with self.store.reading() as tx:
            counts = tx.db.execute(select(usage.c.feature).order_by(usage.c.feature)).scalars().all()
            return list(counts), list(tx.db.execute(select(events.c.type).order_by(events.c.type)).scalars())


@pytest.fixture
def cleaned(database_url: str) -> Iterator[CleanedStore]:
    """Give a new database."""
    made = CleanedStore(database_url)
    yield made
    made.store.close()


def test_what_is_too_old_goes(cleaned: CleanedStore) -> None:
    """Counts are deleted after two days, events after 90."""
    for name, age in (("a", HOUR), ("b", 49 * HOUR), ("c", 89 * DAY), ("d", 91 * DAY)):
        cleaned.add(name, age)
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == (["a"], ["a", "b", "c"])


def test_it_is_not_done_each_time(cleaned: CleanedStore) -> None:
    """Counts are checked once an hour, events once a day."""
    cleaned.tidying.run_due_tasks()
    cleaned.add("old", 91 * DAY)
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == (["old"], ["old"])
    asyncio.run(cleaned.clock.advance(3601))
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == ([], ["old"])
    asyncio.run(cleaned.clock.advance(86_400))
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == ([], [])


def test_what_fails_is_done_the_next_time(cleaned: CleanedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database is away, the log has a line, and the next call does the work."""

    def fail(tx: Tx) -> None:
        raise DatabaseError("away")

    cleaned.add("old", 91 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(cleanup, "TASKS", tuple((fail, every) for _, every in cleanup.TASKS))
        cleaned.tidying.run_due_tasks()
    assert "old data could not be deleted" in cleaned.log.at("warn")
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == ([], [])
