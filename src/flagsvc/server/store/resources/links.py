"""External links of features (import validation 6.3, step 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, insert, select

from flagsvc.server.store.checks import ExternalLink
from flagsvc.server.store.schema import links
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks

SHOWN = ("url", "title")
"""The members of a link that tell whether it is another one."""


def add_links(tx: Tx, wanted: Sequence[ExternalLink]) -> None:
    """Store links, in their order."""
    if not wanted:
        return
    places = tx.positions(links, len(wanted))
    rows = [
        each._asdict() | {"id": str(uuid4()), "position": place} for place, each in zip(places, wanted, strict=True)
    ]
    tx.db.execute(insert(links), rows)


def set_links(tx: Tx, project: str, feature: str, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Give a feature these links, with their ids, and record each that is new or gone."""
    before = links_of(tx, [feature]).get(feature, [])
    put_back_links(tx, feature, wanted)
    after = links_of(tx, [feature]).get(feature, [])
    record_links(tx, project, feature, before, after)


def record_links(
    tx: Tx, project: str, feature: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> None:
    """Record which links of a feature are gone, and which are new; each event holds all links before and after."""
    place = {"project": project, "feature": feature}
    old, new = ([{name: each[name] for name in SHOWN} for each in side] for side in (before, after))
    sides: tuple[dict[str, Any], dict[str, Any]] = ({"links": list(before)}, {"links": list(after)})
    for link in old:
        if link not in new:
            tx.record_event("feature-link-removed", **place, before=link | sides[0], data=sides[1])
    for link in new:
        if link not in old:
            tx.record_event("feature-link-added", **place, before=sides[0], data=link | sides[1])


def put_back_links(tx: Tx, feature: str, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Give a feature these links, with their ids, in place of those that it has."""
    remove_links(tx, [feature])
    places = tx.positions(links, len(wanted))
    rows = [
        {"feature": feature, "position": place} | {name: each[name] for name in ("id", "url", "title")}
        for place, each in zip(places, wanted, strict=True)
    ]
    if rows:
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
