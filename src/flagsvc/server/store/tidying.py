"""What is kept for a time only is deleted now and then, apart from every request (decision 0018)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import delete

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.server.store.nouns import usage
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Store, Tx

EVENT_DAYS = 90
"""Days that an event is kept."""
HOUR_S, DAY_S = 3600.0, 86_400.0


def forget_events(tx: Tx) -> None:
    """Delete the events that are older than 90 days."""
    tx.db.execute(delete(events).where(events.c.created_at < tx.now - timedelta(days=EVENT_DAYS)))


CHORES: tuple[tuple[Callable[[Tx], None], float], ...] = ((usage.forget, HOUR_S), (forget_events, DAY_S))
"""What is done, and how many seconds lie between two times."""


class Tidying:
    """Deletes what is too old, when it is time to. Used by one thread."""

    def __init__(self, store: Store, clock: Clock, log: Logger) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._next = [float("-inf")] * len(CHORES)

    def tidy(self) -> None:
        """Do what is due. Never raises; what the database did not take is due again the next time."""
        now = self._clock.monotonic()
        for place, (chore, every) in enumerate(CHORES):
            if now < self._next[place]:
                continue
            try:
                with self._store.noting() as tx:
                    chore(tx)
            except DatabaseError as error:
                self._log.warn("what is too old is not deleted", error=str(error))
            else:
                self._next[place] = now + every
