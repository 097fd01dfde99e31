"""External links of features, as on the real server's `…/features/:featureName/link` (import validation 6.3, step 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, insert, select, update

from flagsvc.server.store.checks import ExternalLink, Json, make_link
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources.features import find, require
from flagsvc.server.store.schema import links
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks, rows_in

SHOWN = ("url", "title")
"""The members of a link that people set."""


def add_links(tx: Tx, wanted: Sequence[ExternalLink]) -> None:
    """Store links, in their order."""
    if not wanted:
        return
    places = tx.positions(links, len(wanted))
    rows = [each._asdict() | {"id": str(uuid4()), "position": place} for place, each in zip(places, wanted, strict=True)]
    tx.db.execute(insert(links), rows)


def set_links(tx: Tx, projects: Mapping[str, str], wanted: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Give features of `projects` these links, with their ids, and record each that is new or gone."""
    before = links_of(tx, wanted)
    put_back_links(tx, wanted)
    after = links_of(tx, wanted)
    for feature in wanted:
        record_links(tx, projects[feature], feature, before.get(feature, []), after.get(feature, []))


def record_links(
    tx: Tx, project: str, feature: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> None:
    """Record which links of a feature are gone, changed and new; each event holds all links before and after."""
    place = {"project": project, "feature": feature}
    old, new = ({each["id"]: {name: each[name] for name in SHOWN} for each in side} for side in (before, after))
    sides: tuple[Json, Json] = ({"links": list(before)}, {"links": list(after)})
    for number, link in old.items():
        if number in new and link != new[number]:
            tx.record_event("feature-link-updated", **place, before=link | sides[0], data=new[number] | sides[1])
        elif number not in new and link not in new.values():
            tx.record_event("feature-link-removed", **place, before=link | sides[0], data=sides[1])
    for number, link in new.items():
        if number not in old and link not in old.values():
            tx.record_event("feature-link-added", **place, before=sides[0], data=link | sides[1])


def put_back_links(tx: Tx, wanted: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Replace the links of features by these links, with their ids."""
    remove_links(tx, wanted)
    given = [(feature, each) for feature, held in wanted.items() for each in held]
    rows = [
        {"feature": feature, "position": place} | {name: each[name] for name in ("id", "url", "title")}
        for place, (feature, each) in zip(tx.positions(links, len(given)), given, strict=True)
    ]
    if rows:
        tx.db.execute(insert(links), rows)


def remove_links(tx: Tx, features: Iterable[str]) -> None:
    for chunk in chunks(dict.fromkeys(features)):
        tx.db.execute(delete(links).where(links.c.feature.in_(chunk)))


def links_of(tx: Tx, features: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the links of features in order, each with id, url and title, by feature."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    query = select(links).order_by(links.c.position)
    for row in rows_in(tx, query, links.c.feature, features):
        found[row.feature].append({"id": row.id, "url": row.url, "title": row.title})
    return dict(found)


def add(tx: Tx, project: str, feature: str, wanted: Mapping[str, Any]) -> None:
    """Add a link to an active feature. Raises CallerError: 400 for its URL, 403 for one too many, 404."""
    row = find(tx, feature)
    if row is None or row.archived_at is not None:
        raise not_found(f"Could not find feature with name {feature}")
    require(tx, project, feature)
    before = links_of(tx, [feature]).get(feature, [])
    link = _checked(feature, wanted, len(before))
    add_links(tx, [link])
    given = {name: each for name, each in (("url", link.url), ("title", link.title)) if name in wanted}
    data = given | {"links": links_of(tx, [feature])[feature]}
    tx.record_event("feature-link-added", project=project, feature=feature, before={"links": before}, data=data)


def _checked(feature: str, wanted: Mapping[str, Any], before: int) -> ExternalLink:
    """Return a link to store, with the title as it was sent. Raises CallerError (400, 403)."""
    title = wanted.get("title")
    return make_link(feature, wanted["url"], title, before)._replace(title=title)


def change(tx: Tx, project: str, feature: str, identity: str, wanted: Mapping[str, Any]) -> None:
    """Change the URL of a link, and its title if that is present. Raises CallerError (400, 404)."""
    before, old = _held(tx, project, feature, identity)
    link = _checked(feature, wanted, 0)
    columns = {"url": link.url} | ({"title": link.title} if "title" in wanted else {})
    tx.db.execute(update(links).where(links.c.id == identity).values(columns))
    after, new = _held(tx, project, feature, identity)
    sides: Json = {"before": old | {"links": before}, "data": new | {"links": after}}
    tx.record_event("feature-link-updated", project=project, feature=feature, **sides)


def remove(tx: Tx, project: str, feature: str, identity: str) -> None:
    """Remove a link of a feature. Raises CallerError (404)."""
    before, old = _held(tx, project, feature, identity)
    tx.db.execute(delete(links).where(links.c.id == identity))
    sides: Json = {"before": old | {"links": before}, "data": {"links": links_of(tx, [feature]).get(feature, [])}}
    tx.record_event("feature-link-removed", project=project, feature=feature, **sides)


def _held(tx: Tx, project: str, feature: str, identity: str) -> tuple[list[Json], Json]:
    """Return the links of a feature, and URL and title of one of them. Raises CallerError (404).

    Ours: the real server changes and removes links of any feature.
    """
    require(tx, project, feature)
    held = links_of(tx, [feature]).get(feature, [])
    found = next((each for each in held if each["id"] == identity), None)
    if found is None:
        raise not_found(f"No item with id {identity}")
    return held, {"url": found["url"], "title": found["title"]}
