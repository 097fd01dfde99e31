"""The deliveries of a webhook as the API answers them (dialects: Addons)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.outbox import DELIVERED, WAITING, own
from flagsvc.server.store.resources.events import find_events
from flagsvc.server.store.schema import deliveries
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time


def list_deliveries(tx: Tx, addon: int, limit: int, offset: int) -> list[Json]:
    """Return deliveries of a webhook, the newest first, each with its event."""
    query = select(deliveries).where(own.addon_id == addon).order_by(own.id.desc()).limit(limit).offset(offset)
    rows = tx.db.execute(query).all()
    events = find_events(tx, {row.event_id for row in rows if row.event_id is not None})
    return [to_json(row, row.sample or events.get(row.event_id)) for row in rows]


def to_json(row: Row[Any], event: Json | None) -> Json:
    """Return a delivery with its event; None for an event that is deleted."""
    return {
        "id": str(row.id),
        "integrationId": row.addon_id,
        "createdAt": format_time(row.created_at),
        "state": row.state,
        "stateDetails": words_of(row),
        "event": event,
        "details": {
            "deliveryId": row.uid,
            "attempts": row.attempts,
            "status": row.status,
            "endedAt": format_time(row.ended_at),
            "dueAt": format_time(row.due_at) if row.state == WAITING else None,
        },
    }


def words_of(row: Row[Any]) -> str:
    """Return the state of a delivery in words."""
    if row.state == DELIVERED:
        return f"the receiver answered with the status {row.status}"
    return row.error or "it waits for its first attempt"
