"""What a row of the undo table needs: how a subject is read and set back, in the form that its events hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources.features import find
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change

Scope: TypeAlias = Callable[[Tx, Change], str | None]


class Subject(NamedTuple):
    """A part of the database that events change.

    `read` returns what is there now, in the form of the event's `after`. `restore` makes it what the event's `before` is, and
    records that; it raises CallerError. `word` is what people call it.
    """

    word: str
    read: Callable[[Tx, Change], Side]
    restore: Callable[[Tx, Change], None]


def place_of(tx: Tx, change: Change) -> StrategyPlace:
    """Return the flag and the environment of an event, with the project that the flag is in now."""
    return StrategyPlace(owner_of(tx, change) or "", change.feature or "", change.environment or "")


def owner_of(tx: Tx, change: Change) -> str | None:
    """Return the project that the flag of an event is in now; that of the event without the flag."""
    row = None if change.feature is None else find(tx, change.feature)
    return change.project if row is None else str(row.project)
