"""Maintenance mode: while it is on, the admin API accepts no changes (import validation 1, step 4)."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from flagsvc.server.store.schema import state
from flagsvc.server.store.store import Tx

STATE_KEY = "maintenance"


def is_in_maintenance(tx: Tx) -> bool:
    """Return whether the server is in maintenance mode."""
    return bool(tx.db.execute(select(state.c.value).where(state.c.key == STATE_KEY)).scalar())


def set_maintenance(tx: Tx, on: bool) -> None:
    """Switch maintenance mode on or off."""
    tx.db.execute(delete(state).where(state.c.key == STATE_KEY))
    tx.db.execute(insert(state).values(key=STATE_KEY, value=on))
