"""Old data is deleted: counts once an hour, events once a day, in small steps."""

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
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import FakeClock, RecordingLog

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class CleanedStore:
    """A store, its clock, and the cleanup."""

    def __init__(self, url: str, event_days: int = 90) -> None:
        self.clock, self.log = FakeClock(), RecordingLog()
        self.store: Store = open_store(url, self.clock, self.log)
        self.tidying = Cleanup(self.store, self.clock, self.log, event_days)

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

    def fail() -> None:
        raise DatabaseError("away")

    cleaned.add("old", 91 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(cleaned.store, "recording", fail)
        cleaned.tidying.run_due_tasks()
    assert "old data could not be deleted" in cleaned.log.at("warn")
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == ([], [])


def test_events_go_in_small_steps(cleaned: CleanedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run deletes at most one step of events, the oldest first; the next run goes on until no old one is left."""
    monkeypatch.setattr(cleanup, "STEP", 2)
    for name, days in (("a", 95), ("b", 94), ("c", 93), ("d", 1)):
        cleaned.add(name, days * DAY)
    left = []
    for _ in range(3):
        cleaned.tidying.run_due_tasks()
        left.append(cleaned.left()[1])
    assert left == [["c", "d"], ["d"], ["d"]]


@pytest.mark.parametrize(("days", "left"), [(0, ["a", "b", "c"]), (30, ["a"]), (365, ["a", "b"])])
def test_the_option_says_how_long_events_are_kept(database_url: str, days: int, left: list[str]) -> None:
    """Events are kept for so many days; 0 keeps them for ever."""
    cleaned = CleanedStore(database_url, days)
    try:
        for name, age in (("a", 29), ("b", 91), ("c", 5000)):
            cleaned.add(name, age * DAY)
        cleaned.tidying.run_due_tasks()
        assert cleaned.left()[1] == left
    finally:
        cleaned.store.close()
