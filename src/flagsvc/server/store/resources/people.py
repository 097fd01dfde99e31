"""Users as authors of changes, in the answers of the admin API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func, select

from flagsvc.server.store.schema import events, users
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks

NO_PICTURE = ""
"""The real server answers the URL of a picture on another host; ours never refers to other hosts."""


def person_to_json(number: int, name: str | None) -> dict[str, Any]:
    """Return a user as the API answers it."""
    return {"id": number, "name": name or "unknown", "imageUrl": NO_PICTURE}


def names_of(tx: Tx, numbers: Iterable[int]) -> dict[int, str]:
    """Return the names of users, by id."""
    found: dict[int, str] = {}
    for chunk in chunks(set(numbers)):
        query = select(users.c.id, users.c.name, users.c.username, users.c.email).where(users.c.id.in_(chunk))
        found |= {row.id: row.name or row.username or row.email or "unknown" for row in tx.db.execute(query)}
    return found


def list_collaborators(tx: Tx, feature: str) -> list[dict[str, Any]]:
    """Return the users who changed a feature, the most recent first."""
    latest = func.max(events.c.id)
    query = (
        select(events.c.created_by_id, func.max(events.c.created_by))
        .where(events.c.feature == feature, events.c.created_by_id.is_not(None))
        .group_by(events.c.created_by_id)
        .order_by(latest.desc())
    )
    rows = [(number, name) for number, name in tx.db.execute(query)]
    known = names_of(tx, (number for number, _ in rows))
    return [person_to_json(number, known.get(number, name)) for number, name in rows]
