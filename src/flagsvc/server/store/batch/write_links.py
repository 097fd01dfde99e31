"""Import, step 6: links of features (import validation 6.3, step 6)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.checks import ExternalLink, make_link
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources.links import add_links, links_of, record_links, remove_links


def write_links(work: ImportWork) -> None:
    """Replace the links of every feature that `links` names, if they differ. Raises CallerError (400, 403, 404)."""
    before = links_of(work.tx, (each["feature"] for each in work.data.links))
    wanted: dict[str, list[ExternalLink]] = defaultdict(list)
    for each in _read_links(work):
        wanted[each.feature].append(each)
    named = dict.fromkeys(each["feature"] for each in work.data.links)
    changed = [
        name for name in named if _shown(before.get(name, [])) != [(each.url, each.title) for each in wanted[name]]
    ]
    remove_links(work.tx, changed)
    add_links(work.tx, [each for name in changed for each in wanted[name]])
    after = links_of(work.tx, changed)
    for name in changed:
        record_links(work.tx, work.data.project, name, before.get(name, []), after.get(name, []))


def _shown(links: Sequence[Mapping[str, Any]]) -> list[tuple[str, str | None]]:
    return [(each["url"], each["title"]) for each in links]


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
