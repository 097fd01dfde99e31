"""The undo table: a row for each kind of event that can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flagsvc.server.store.undo.of_flags import STATE
from flagsvc.server.store.undo.subjects import Scope, Subject, owner_of


class UndoRow(NamedTuple):
    """How a kind of events is undone: what is set back, and the permissions of which the opposite operation needs one.

    `scope` returns the project in which the permission is needed. Without a subject, `reason` says why the kind cannot be undone.
    """

    type: str
    subject: Subject | None = None
    permissions: tuple[str, ...] = ()
    reason: str = ""
    scope: Scope = owner_of


SWITCH = ("UPDATE_FEATURE_ENVIRONMENT",)
ROWS = (
    UndoRow("feature-environment-enabled", STATE, SWITCH),
    UndoRow("feature-environment-disabled", STATE, SWITCH),
)
UNDO: Mapping[str, UndoRow] = {row.type: row for row in ROWS}
UNKNOWN = "This server cannot undo this kind of change"


def row_of(kind: str) -> UndoRow:
    """Return the row of a kind of events; one with a reason for a kind that only another version knows."""
    return UNDO.get(kind) or UndoRow(kind, reason=UNKNOWN)
