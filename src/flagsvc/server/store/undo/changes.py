"""The events that are undone: one, or all of an action."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.errors import CallerError, not_found
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
        raise unknown_event(number)
    return to_change(row)


def unknown_event(number: int) -> CallerError:
    """Return the error (404) for an event that is not there, or that the caller may not see."""
    return not_found(f"There is no event {number}: it never was, or it is deleted by its age")


def find_action(tx: Tx, action: str) -> list[Change]:
    """Return the events that were done together, in their order; none for an unknown id."""
    return read_changes(tx.db.execute(select(events).where(events.c.action == action).order_by(events.c.id)))


def require_action(tx: Tx, action: str) -> list[Change]:
    """Return the events that were done together, in their order. Raises CallerError (404)."""
    found = find_action(tx, action)
    if not found:
        raise unknown_action()
    return found


def unknown_action() -> CallerError:
    """Return the error (404) for an action that is not there, or of which the caller may see no event."""
    return not_found("There is no such action: it never was, or it is deleted by its age")


def may_see(actor: Actor | None, change: Change) -> bool:
    """Return whether a caller may see an event: as in the history, one without a project is for administrators.

    A caller also sees what they did themselves. None is the server itself.
    """
    return actor is None or change.project is not None or change.by_id == actor.id or actor.may("ADMIN")


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
