"""Maintenance mode: while it is on, the admin API accepts no changes (import validation 1, step 4)."""

from __future__ import annotations

from sqlalchemy import select

from flagsvc.server.store.schema import state
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import upsert

STATE_KEY = "maintenance"
SETTING = "maintenance.mode"
"""The name of the setting in events."""


def is_in_maintenance(tx: Tx) -> bool:
    """Return whether the server is in maintenance mode."""
    return bool(tx.db.execute(select(state.c.value).where(state.c.key == STATE_KEY)).scalar())


def set_maintenance(tx: Tx, on: bool) -> None:
    """Switch maintenance mode on or off."""
    before = tx.db.execute(select(state.c.value).where(state.c.key == STATE_KEY)).scalar()
    upsert(tx, state, [{"key": STATE_KEY, "value": on}], ["value"])
    if before is None:
        tx.record_event("setting-created", data={"id": SETTING, "enabled": on})
    else:
        tx.record_event("setting-updated", before={"enabled": before}, data={"id": SETTING, "enabled": on})
