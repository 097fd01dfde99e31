"""Deletes old usage and events from time to time, outside of requests (decision 0018)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import delete

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.server.store.resources import usage
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Store, Tx

EVENT_DAYS = 90
"""Days after which an event is deleted."""
HOUR_S, DAY_S = 3600.0, 86_400.0


def delete_old_events(tx: Tx) -> None:
    """Delete the events that are older than 90 days."""
    tx.db.execute(delete(events).where(events.c.created_at < tx.now - timedelta(days=EVENT_DAYS)))


TASKS: tuple[tuple[Callable[[Tx], None], float], ...] = ((usage.delete_old, HOUR_S), (delete_old_events, DAY_S))
"""Each task, and the seconds between two runs of it."""


class Cleanup:
    """Runs each task when it is due. Used by one thread."""

    def __init__(self, store: Store, clock: Clock, log: Logger) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._next = [float("-inf")] * len(TASKS)

    def run_due_tasks(self) -> None:
        """Run the tasks that are due. Never raises; a task that failed is due again at the next call."""
        now = self._clock.monotonic()
        for place, (chore, every) in enumerate(TASKS):
            if now < self._next[place]:
                continue
            try:
                with self._store.recording() as tx:
                    chore(tx)
            except DatabaseError as error:
                self._log.warn("old data could not be deleted", error=str(error))
            else:
                self._next[place] = now + every
