"""The tables of webhooks: their settings, and the queue of what they send. `schema.py` has them with all others (decision 0062)."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

from flagsvc.server.store.columns import METADATA, Json, Serial, UtcDateTime

addons = Table(
    "addons",
    METADATA,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("provider", String, nullable=False),
    Column("description", Text),
    Column("enabled", Boolean, nullable=False),
    Column("parameters", Json, nullable=False),
    Column("events", Json, nullable=False),
    Column("projects", Json, nullable=False),
    Column("environments", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("dropped", BigInteger, nullable=False, default=0),
    Column("changed_by_id", Serial),
    sqlite_autoincrement=True,
)
"""Webhooks: where events go, and which. `parameters` has secrets in plain: they are sent. `dropped` counts events for which the
queue had no room. `changed_by_id` is the user who made or changed it last, as events have it. It has no foreign key: an admin token
is no user. Ids of users are never given out again."""

deliveries = Table(
    "deliveries",
    METADATA,
    Column("id", Serial, primary_key=True),
    Column("uid", String, nullable=False),
    Column("addon_id", Serial, ForeignKey("addons.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", Serial, index=True),
    Column("sample", Json),
    Column("state", String, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("created_at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("status", Integer),
    Column("error", Text),
    Index("ix_deliveries_addon_id_state_due_at", "addon_id", "state", "due_at"),
)
"""What webhooks have sent and still have to send (outbox.py): an event, or the event `sample` of a test. `uid` is the same in every
attempt. A server that makes an attempt sets `due_at` to when another one may, should it not come back."""
