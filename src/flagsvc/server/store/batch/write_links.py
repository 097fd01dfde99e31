"""Import, step 6: links of features (import validation 6.3, step 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

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
    _record(work, before, wanted)


def _record(
    work: ImportWork, before: Mapping[str, Sequence[Mapping[str, Any]]], wanted: Sequence[ExternalLink]
) -> None:
    """Record which links are gone, and which are new."""
    old = {(name, each["url"], each["title"]) for name, links in before.items() for each in links}
    new = [(each.feature, each.url, each.title) for each in wanted]
    for name, url, title in sorted(old - set(new), key=repr):
        work.record_event("feature-link-removed", name, before={"url": url, "title": title})
    for name, url, title in new:
        if (name, url, title) not in old:
            work.record_event("feature-link-added", name, data={"url": url, "title": title})


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
