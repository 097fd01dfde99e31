"""Maintenance mode: while it is on, the admin API takes no changes (import validation 1, step 4)."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from flagsvc.server.store.schema import state
from flagsvc.server.store.store import Tx

KEY = "maintenance"


def in_maintenance(tx: Tx) -> bool:
    """Return whether the server is in maintenance mode."""
    return bool(tx.db.execute(select(state.c.value).where(state.c.key == KEY)).scalar())


def set_maintenance(tx: Tx, on: bool) -> None:
    """Switch maintenance mode."""
    tx.db.execute(delete(state).where(state.c.key == KEY))
    tx.db.execute(insert(state).values(key=KEY, value=on))
