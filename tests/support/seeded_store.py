"""A database with some features and their objects, for tests of store functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import select, update

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.schema import events, strategies
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.admin_call_rows import STRATEGIES
from support.planting import plant
from support.server_pair import GIVEN, USES

ACTOR = Actor(7, "somebody", root_role="admin")


class SeededStore:
    """A store in the state of `server_pair`: features web, app, old (archived), elsewhere, each with one strategy."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def read(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Return the result of a function that reads."""
        with self.store.reading() as tx:
            return function(tx, *given, **named)

    def write(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Return the result of a function that writes, in its own transaction."""
        with self.store.writing(ACTOR) as tx:
            return function(tx, *given, **named)

    def refusal(self, function: Callable[..., Any], *given: Any, **named: Any) -> tuple[int, str, list[str]]:
        """Return how a function refuses: status, name and the messages of its details."""
        try:
            self.write(function, *given, **named)
        except CallerError as refusal:
            return refusal.status, refusal.name, [each["message"] for each in refusal.details]
        raise AssertionError(f"{function.__name__} refuses nothing")

    def told(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return type, and other columns, of what happened by the hand of the actor."""
        names = [events.c[name] for name in ("type", *columns)]
        with self.store.reading() as tx:
            query = select(*names).where(events.c.created_by == ACTOR.name).order_by(events.c.id)
            return [tuple(row) for row in tx.db.execute(query)]


@contextmanager
def open_seeded_store(database: str) -> Iterator[SeededStore]:
    store = open_store(database, FakeClock(1_750_000_000.0), RecordingLog())
    try:
        with store.writing(None) as tx:
            plant(tx, GIVEN)
            for name, feature, _, _ in USES:
                tx.db.execute(update(strategies).where(strategies.c.feature == feature).values(id=STRATEGIES[name]))
        yield SeededStore(store)
    finally:
        store.close()
