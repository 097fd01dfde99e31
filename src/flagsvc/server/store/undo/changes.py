"""The events that are undone: one, or all of an action."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, select

from flagsvc.server.store.errors import not_found
from flagsvc.server.store.event_kinds import Side, kind_of, words_of
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Tx


class Change(NamedTuple):
    """An event: `before` and `after` are whole, None for nothing. `by` made it `at` a time. Events done together share `action`."""

    id: int
    type: str
    project: str | None
    environment: str | None
    feature: str | None
    before: Side
    after: Side
    by: str
    by_id: int | None
    at: datetime
    way: str | None
    action: str | None


def find_change(tx: Tx, number: int) -> Change:
    """Return an event. Raises CallerError (404)."""
    row = tx.db.execute(select(events).where(events.c.id == number)).first()
    if row is None:
        raise not_found(f"There is no event {number}: it never was, or it is deleted by its age")
    return to_change(row)


def find_action(tx: Tx, action: str) -> list[Change]:
    """Return the events that were done together, in their order; none for an unknown id."""
    return read_changes(tx.db.execute(select(events).where(events.c.action == action).order_by(events.c.id)))


def require_action(tx: Tx, action: str) -> list[Change]:
    """Return the events that were done together, in their order. Raises CallerError (404)."""
    found = find_action(tx, action)
    if not found:
        raise not_found("There is no such action: it never was, or it is deleted by its age")
    return found


def read_changes(rows: Iterable[Row[Any]]) -> list[Change]:
    """Return the events of rows."""
    return [to_change(row) for row in rows]


def to_change(row: Row[Any]) -> Change:
    """Return the event of a row."""
    what = (row.id, row.type, row.project, row.environment, row.feature, row.before, row.data)
    return Change(*what, row.created_by, row.created_by_id, row.created_at, row.way, row.action)


def sentence_of(change: Change, by: str) -> str:
    """Return an event as a sentence without marks around its names. `by` is who did it."""
    found = {"by": by, "feature": change.feature, "environment": change.environment, "project": change.project}
    return words_of(kind_of(change.type), found, change.before, change.after).replace("**", "")
