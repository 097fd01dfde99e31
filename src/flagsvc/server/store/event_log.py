"""Stores the events of a transaction when it commits, and queues them for webhooks (decision 0054; decision 0062)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from flagsvc.server.store.errors import bad_data
from flagsvc.server.store.outbox import find_receivers, queue_events
from flagsvc.server.store.schema import events, feature_tags

AT_ONCE = 500
"""The most flags of one query."""
MOST_TAGS = 1_000_000
"""The most tags that the events of a transaction hold together: each event holds all tags of its flag."""


def store_events(db: Connection, pending: Sequence[dict[str, Any]]) -> None:
    """Store events, each with the tags that its feature now has. Raises CallerError (400) for too many of both."""
    if not pending:
        return
    found = _read_tags(db, sorted({row["feature"] for row in pending if row["feature"] is not None}))
    rows = [row | {"tags": found.get(row["feature"], [])} for row in pending]
    held = sum(len(row["tags"]) for row in rows)
    if held > MOST_TAGS:
        raise bad_data(
            f"The events of this change would hold {held:,} tags, and at most {MOST_TAGS:,} are stored at once: each of them "
            "holds all tags of its feature. Change fewer features, or fewer of their tags, at once."
        )
    receivers = find_receivers(db)
    if not receivers:
        db.execute(insert(events), rows)
        return
    stored = db.execute(insert(events).returning(events.c.id, sort_by_parameter_order=True), rows).scalars()
    queue_events(db, receivers, list(zip(stored, rows, strict=True)))


def _read_tags(db: Connection, names: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """Return the tags of features, by feature."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    tag = feature_tags.c
    for start in range(0, len(names), AT_ONCE):
        these = tag.feature.in_(names[start : start + AT_ONCE])
        query = select(tag.feature, tag.type, tag.value).where(these).order_by(tag.type, tag.value)
        for row in db.execute(query):
            found[row.feature].append({"value": row.value, "type": row.type})
    return found
