"""Import, steps 3 to 6: tag types, tags, context fields and links (import validation 6.3, steps 3 to 6)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import select

from flagsvc.server.store.batch.dataset import Json, find_repeated
from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.batch.rules import (
    TAG_LENGTHS,
    context_field_problems,
    length_problems,
    tag_problems,
)
from flagsvc.server.store.checks import ExternalLink, invalid, make_link
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources import context_fields, tags
from flagsvc.server.store.resources.features import NO_FLAG
from flagsvc.server.store.resources.links import add_links, links_of, record_links, remove_links
from flagsvc.server.store.resources.tag_types import FIELDS, WRITER
from flagsvc.server.store.schema import tag_types


def write_tag_types(work: ImportWork) -> None:
    """Create the new tag types; the last entry of a repeated one counts. Raises CallerError (400)."""
    new = {each["name"]: each for each in work.data.tag_types if each["name"] not in work.known.tag_types}
    for each in new.values():
        found = list(length_problems("name", each["name"], *TAG_LENGTHS, friendly=True))
        if found:
            raise invalid(*found)
    wholes = ({name: each.get(name) for name in FIELDS} for each in new.values())
    WRITER.put(work.tx, *wholes, tell=lambda whole: new[whole["name"]])


def write_tags(work: ImportWork) -> None:
    """Replace the tags of every feature of the data set. Raises CallerError (400, 404)."""
    wanted = [each for each in work.data.tags if each.get("tagType")]
    types = set(work.tx.db.execute(select(tag_types.c.name)).scalars())
    for each in wanted:
        _check_tag(work, each, types)
    found = dict.fromkeys((each["featureName"], each["tagType"], each["tagValue"]) for each in wanted)
    names = dict.fromkeys([*work.data.names, *(name for name, _, _ in found)])
    before, replaced = tags.list_held(work.tx, names), set(work.data.names)
    projects = dict.fromkeys(names, work.data.project)
    tags.give(work.tx, projects, [each for each in found if each not in before])
    tags.remove_held(work.tx, projects, sorted(each for each in before - found.keys() if each[0] in replaced))


def _check_tag(work: ImportWork, tag: Json, types: set[str]) -> None:
    """Raise CallerError for a tag that a feature cannot have."""
    if tag["featureName"] not in work.features:
        raise not_found(NO_FLAG)
    kind, value = tag["tagType"], tag["tagValue"]
    found = list(tag_problems(kind, value))
    if found:
        raise invalid(*found)
    if kind not in types:
        raise bad_data(f"Tag type '{kind}' does not exist")


def write_context_fields(work: ImportWork) -> None:
    """Create the new context fields. Raises CallerError (400, 404, 409)."""
    new = [each for each in work.data.context_fields if each["name"] not in work.known.context_fields]
    for each in new:
        _check_context_field(each)
    twice = find_repeated([each["name"] for each in new])
    if twice:
        raise CallerError("NameExistsError", f"The data has more than one context field of the name {twice[0]}")
    if work.known.project is None and any(each.get("project") for each in new):
        raise not_found(f"Could not find project with id {work.data.project}")
    members = ("name", "description", "stickiness", "legalValues")
    IMPORTED_FIELDS.put(
        work.tx,
        *(
            {name: each[name] for name in members if name in each}
            | {"project": work.data.project if each.get("project") else None}
            for each in new
        ),
    )


IMPORTED_FIELDS: Final = replace(context_fields.WRITER, place=lambda whole: {"project": whole.get("project")})
"""The writer of context fields; its events name the project, because the import belongs to it."""


def _check_context_field(field: Json) -> None:
    """Raise CallerError (400) for the first problem of a new context field."""
    found = next(context_field_problems(field), None)
    if found is not None:
        raise invalid(found)


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
