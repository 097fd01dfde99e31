"""Import, step 6: links of features (import validation 6.3, step 6)."""

from __future__ import annotations

from collections import Counter

from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.checks import ExternalLink, make_link
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources.links import add_links, links_of, remove_links


def write_links(work: ImportWork) -> None:
    """Replace the links of every feature that `links` names. Raises CallerError (400, 403, 404)."""
    before = links_of(work.tx, (each["feature"] for each in work.data.links))
    wanted = _read_links(work)
    remove_links(work.tx, (each["feature"] for each in work.data.links))
    add_links(work.tx, wanted)
    for each in wanted:
        if not any(held["url"] == each.url and held["title"] == each.title for held in before.get(each.feature, ())):
            work.record_event("feature-link-added", each.feature, {"url": each.url, "title": each.title})


def _read_links(work: ImportWork) -> list[ExternalLink]:
    found: list[ExternalLink] = []
    counts: Counter[str] = Counter()
    for entry in work.data.links:
        name = entry["feature"]
        for each in entry["links"]:
            stored = work.features.get(name)
            if stored is None or stored.archived:
                raise not_found(f"Could not find feature with name {name}")
            found.append(make_link(name, each["url"], each.get("title"), counts[name]))
            counts[name] += 1
    return found
