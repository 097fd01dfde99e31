"""Finds the later event that stands in the way of an undo."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import or_, select

from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change, sentence_of, to_change
from flagsvc.server.store.undo.subjects import Path
from flagsvc.server.store.undo.table import row_of

MOST = 5000
"""The most later events that are looked at."""
ACROSS = "feature-dependency-added"
"""The type of the events of a flag that use another one."""


def find_later(tx: Tx, change: Change) -> Change | None:
    """Return the newest event after an event that changed the same, or that uses it; None if no stored event tells."""
    subject = row_of(change.type).subject
    own = () if subject is None else subject.paths(change)
    event = events.c
    query = select(events).where(event.id > change.id, or_(event.action.is_(None), event.action != change.action))
    if change.feature is not None:
        query = query.where(or_(event.feature == change.feature, event.feature.is_(None), event.type == ACROSS))
    rows = tx.db.execute(query.order_by(event.id.desc()).limit(MOST))
    return next((later for row in rows if _touches(later := to_change(row), own)), None)


def _touches(later: Change, own: Iterable[Path]) -> bool:
    subject = row_of(later.type).subject
    if subject is None:
        return False
    paths = (*subject.paths(later), *subject.uses(later))
    return any(_overlap(one, other) for one in own for other in paths)


def _overlap(one: Path, other: Path) -> bool:
    """Return whether one of two parts of the database contains the other."""
    return all(left == right for left, right in zip(one, other, strict=False))


def tell(later: Change) -> str:
    """Return what an event did, by whom and when."""
    return f"{sentence_of(later, later.by)} on {later.at:%Y-%m-%d at %H:%M:%S} UTC (event {later.id})"
