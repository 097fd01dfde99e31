"""Undoes one event, or all events of an action, as new events of one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change, find_change, require_action
from flagsvc.server.store.undo.table import row_of


class Obstacle(NamedTuple):
    """Why changes cannot be undone: a reason, or the permissions of which one is missing."""

    reason: str
    permissions: tuple[str, ...] = ()


def undo_event(tx: Tx, number: int) -> Change:
    """Undo an event, and return it. Raises CallerError: 403, 404, and 409 with the reason."""
    change = find_change(tx, number)
    _undo(tx, [change])
    return change


def undo_action(tx: Tx, action: str) -> list[Change]:
    """Undo all events of an action, the last one first, and return them. Raises CallerError: 403, 404, and 409 with the reason."""
    changes = require_action(tx, action)
    _undo(tx, changes[::-1])
    return changes


def find_obstacle(tx: Tx, actor: Actor | None, changes: Sequence[Change]) -> Obstacle | None:
    """Return what keeps a caller from undoing changes: their kind, or a permission. None if nothing does.

    It does not look at what is there now.
    """
    for change in changes:
        row = row_of(change.type)
        if row.subject is None:
            return Obstacle(row.reason)
        if not _may(tx, actor, change):
            return Obstacle(f"needs {' or '.join(row.permissions)}", row.permissions)
    return None


def _may(tx: Tx, actor: Actor | None, change: Change) -> bool:
    row = row_of(change.type)
    here = {"project": row.scope(tx, change), "environment": change.environment}
    return actor is None or any(actor.may(each, **here) for each in row.permissions)


def _undo(tx: Tx, changes: Sequence[Change]) -> None:
    obstacle = find_obstacle(tx, tx.actor, changes)
    if obstacle is not None:
        name = "PermissionError" if obstacle.permissions else "ConflictError"
        raise CallerError(name, f"This cannot be undone: {obstacle.reason}")
    for change in changes:
        _restore(tx, change)


def _restore(tx: Tx, change: Change) -> None:
    """Set back what one event changed. Raises CallerError (409) if it is no longer what the event left."""
    subject = row_of(change.type).subject
    assert subject is not None
    if subject.read(tx, change) != change.after:
        raise CallerError("ConflictError", f"This cannot be undone: the {subject.word} was changed later")
    subject.restore(tx, change)
