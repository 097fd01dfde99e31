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


class Room:
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
def room(database_url: str) -> Iterator[Room]:
    """Give a new database."""
    made = Room(database_url)
    yield made
    made.store.close()


def test_what_is_too_old_goes(room: Room) -> None:
    """Counts are deleted after two days, events after 90."""
    for name, age in (("a", HOUR), ("b", 49 * HOUR), ("c", 89 * DAY), ("d", 91 * DAY)):
        room.add(name, age)
    room.tidying.run_due_tasks()
    assert room.left() == (["a"], ["a", "b", "c"])


def test_it_is_not_done_each_time(room: Room) -> None:
    """Counts are checked once an hour, events once a day."""
    room.tidying.run_due_tasks()
    room.add("old", 91 * DAY)
    room.tidying.run_due_tasks()
    assert room.left() == (["old"], ["old"])
    asyncio.run(room.clock.advance(3601))
    room.tidying.run_due_tasks()
    assert room.left() == ([], ["old"])
    asyncio.run(room.clock.advance(86_400))
    room.tidying.run_due_tasks()
    assert room.left() == ([], [])


def test_what_fails_is_done_the_next_time(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database is away, the log has a line, and the next call does the work."""

    def fail(tx: Tx) -> None:
        raise DatabaseError("away")

    room.add("old", 91 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(cleanup, "TASKS", tuple((fail, every) for _, every in cleanup.TASKS))
        room.tidying.run_due_tasks()
    assert "old data could not be deleted" in room.log.at("warn")
    room.tidying.run_due_tasks()
    assert room.left() == ([], [])
