"""Links of features to pages elsewhere (import validation, 6.3, 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import delete, insert, select

from flagsvc.flagstore.refusals import Refusal, bad_data
from flagsvc.flagstore.schema import links
from flagsvc.flagstore.store import Tx
from flagsvc.flagstore.upsert import chunks
from flagsvc.flagstore.urls import BadUrl, normalized

MOST_LINKS = 10
"""How many links a feature may have."""


class Link(NamedTuple):
    """A link that is to be: its feature, its address as it is kept, and its title."""

    feature: str
    url: str
    title: str | None


def kept(feature: str, url: str, title: str | None, before: int) -> Link:
    """Return a link as it is kept; `before` is how many the feature has by then. Raises Refusal (400, 403)."""
    if before >= MOST_LINKS:
        raise Refusal("OperationDeniedError", f"Too many links ({MOST_LINKS}) exist for this feature")
    try:
        return Link(feature, normalized(url), title or None)
    except BadUrl:
        raise bad_data(f"Invalid URL: {url}") from None


def add_links(tx: Tx, wanted: Sequence[Link]) -> None:
    """Store links, in their order."""
    if not wanted:
        return
    places = tx.positions(links, len(wanted))
    rows = [
        each._asdict() | {"id": str(uuid4()), "position": place} for place, each in zip(places, wanted, strict=True)
    ]
    tx.db.execute(insert(links), rows)


def remove_links(tx: Tx, features: Iterable[str]) -> None:
    """Take every link of features away."""
    for some in chunks(dict.fromkeys(features)):
        tx.db.execute(delete(links).where(links.c.feature.in_(some)))


def links_of(tx: Tx, features: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the links of features in their order, each with id, url and title, by feature."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    query = select(links).order_by(links.c.position)
    for some in chunks(dict.fromkeys(features)):
        for row in tx.db.execute(query.where(links.c.feature.in_(some))):
            found[row.feature].append({"id": row.id, "url": row.url, "title": row.title})
    return dict(found)
