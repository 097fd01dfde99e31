"""External links of features (import validation 6.3, step 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, insert, select

from flagsvc.server.store.checks import ExternalLink
from flagsvc.server.store.schema import links
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks


def add_links(tx: Tx, wanted: Sequence[ExternalLink]) -> None:
    """Store links, in their order."""
    if not wanted:
        return
    places = tx.positions(links, len(wanted))
    rows = [
        each._asdict() | {"id": str(uuid4()), "position": place} for place, each in zip(places, wanted, strict=True)
    ]
    tx.db.execute(insert(links), rows)


def remove_links(tx: Tx, features: Iterable[str]) -> None:
    """Remove every link of features."""
    for chunk in chunks(dict.fromkeys(features)):
        tx.db.execute(delete(links).where(links.c.feature.in_(chunk)))


def links_of(tx: Tx, features: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the links of features in order, each with id, url and title, by feature."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    query = select(links).order_by(links.c.position)
    for chunk in chunks(dict.fromkeys(features)):
        for row in tx.db.execute(query.where(links.c.feature.in_(chunk))):
            found[row.feature].append({"id": row.id, "url": row.url, "title": row.title})
    return dict(found)
