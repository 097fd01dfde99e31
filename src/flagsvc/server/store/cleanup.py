"""Deletes old usage, events and deliveries from time to time, outside of requests (decision 0018; decision 0054; decision 0062)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

from sqlalchemy import delete, select

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.server.store.outbox import delete_old_deliveries, is_waiting
from flagsvc.server.store.resources import usage
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Store, Tx
from flagsvc.server.store.writability import trouble

HOUR_S, DAY_S = 3600.0, 86_400.0
STEP = 1000
"""The most events that one run deletes, so that no writer waits long. The next run, a minute later, goes on."""

Task: TypeAlias = Callable[[Tx], bool]
"""Does a step of its work in a transaction, and returns whether nothing is left to do."""


def delete_old_usage(tx: Tx) -> bool:
    """Delete old usage, in one step."""
    usage.delete_old(tx)
    return True


def delete_old_events(tx: Tx, days: int) -> bool:
    """Delete the events among the oldest ones that are older than some days; return whether no other one is.

    An event that a webhook still has to send stays.
    """
    oldest = select(events.c.id).order_by(events.c.id).limit(STEP)
    old = events.c.created_at < tx.now - timedelta(days=days)
    return tx.db.execute(delete(events).where(events.c.id.in_(oldest), old, ~is_waiting(events.c.id))).rowcount < STEP


def delete_ended_deliveries(tx: Tx) -> bool:
    """Delete all but the last deliveries of each webhook, in one step."""
    delete_old_deliveries(tx.db)
    return True


def make_tasks(event_days: int) -> tuple[tuple[Task, float], ...]:
    """Return each task, and the seconds between two runs of it. With 0 days, events are kept for ever."""
    tasks: tuple[tuple[Task, float], ...] = ((delete_old_usage, HOUR_S), (delete_ended_deliveries, HOUR_S))
    if not event_days:
        return tasks
    return (*tasks, (lambda tx: delete_old_events(tx, event_days), DAY_S))


class Cleanup:
    """Runs each task when it is due. Used by one thread. Events are deleted after `event_days`; 0: never."""

    def __init__(self, store: Store, clock: Clock, log: Logger, event_days: int) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._tasks = make_tasks(event_days)
        self._next = [float("-inf")] * len(self._tasks)

    def run_due_tasks(self) -> None:
        """Run the tasks that are due. Never raises; a task that failed or is not done is due again at the next call."""
        now = self._clock.monotonic()
        for place, (task, every) in enumerate(self._tasks):
            if now < self._next[place]:
                continue
            try:
                with self._store.recording() as tx:
                    done = task(tx)
            except DatabaseError as error:
                trouble(self._log, error)("old data could not be deleted", error=str(error))
            else:
                self._next[place] = now + every if done else now
