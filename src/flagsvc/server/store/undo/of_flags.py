"""How changes of flags in environments are undone."""

from __future__ import annotations

from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import feature_environments, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.subjects import Subject, place_of


def read_state(tx: Tx, change: Change) -> Side:
    """Return whether the flag is on in the environment."""
    row = feature_environments.find_state(tx, place_of(tx, change))
    return None if row is None else {"enabled": row.enabled}


def restore_state(tx: Tx, change: Change) -> None:
    """Switch the flag back."""
    before = change.before or {}
    strategies.set_state(tx, place_of(tx, change), enabled=bool(before.get("enabled")))


STATE = Subject("switch", read_state, restore_state)
