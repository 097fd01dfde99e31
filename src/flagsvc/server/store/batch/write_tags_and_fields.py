"""Import, steps 3 to 6: tag types, tags, context fields and links (import validation 6.3, steps 3 to 6)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select

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
from flagsvc.server.store.resources.context_fields import find_several as find_fields
from flagsvc.server.store.resources.features import NO_FLAG
from flagsvc.server.store.resources.links import add_links, links_of, record_links, remove_links
from flagsvc.server.store.schema import context_fields, feature_tags, tag_types, tags
from flagsvc.server.store.upsert import chunks, upsert


def write_tag_types(work: ImportWork) -> None:
    """Create the new tag types; the last entry of a repeated one counts. Raises CallerError (400)."""
    new = {each["name"]: each for each in work.data.tag_types if each["name"] not in work.known.tag_types}
    for each in new.values():
        found = list(length_problems("name", each["name"], *TAG_LENGTHS, friendly=True))
        if found:
            raise invalid(*found)
    rows = [{name: each.get(name) for name in ("name", "description", "icon", "color")} for each in new.values()]
    if rows:
        work.tx.db.execute(insert(tag_types), [row | {"created_at": work.tx.now} for row in rows])
    for each in new.values():
        work.tx.record_event("tag-type-created", data=each)


def write_tags(work: ImportWork) -> None:
    """Replace the tags of every feature of the data set. Raises CallerError (400, 404)."""
    wanted = [each for each in work.data.tags if each.get("tagType")]
    types = set(work.tx.db.execute(select(tag_types.c.name)).scalars())
    for each in wanted:
        _check_tag(work, each, types)
    before = _read_tags(work, [*work.data.names, *(each["featureName"] for each in wanted)])
    for chunk in chunks(dict.fromkeys(work.data.names)):
        work.tx.db.execute(delete(feature_tags).where(feature_tags.c.feature.in_(chunk)))
    found = dict.fromkeys((each["featureName"], each["tagType"], each["tagValue"]) for each in wanted)
    _create_tags(work, list(dict.fromkeys((kind, value) for _, kind, value in found)))
    now = {"created_at": work.tx.now, "created_by_id": work.actor.id}
    rows = [{"feature": name, "type": kind, "value": value} | now for name, kind, value in found]
    upsert(work.tx, feature_tags, rows, ["created_by_id"])
    for name, kind, value in found:
        if (name, kind, value) not in before:
            work.record_event("feature-tagged", name, data={"type": kind, "value": value})
    for name, kind, value in sorted(before - found.keys()):
        work.record_event("feature-untagged", name, before={"type": kind, "value": value})


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


def _read_tags(work: ImportWork, names: Sequence[str]) -> set[tuple[str, str, str]]:
    """Return the tags of features: feature, type, value."""
    query = select(feature_tags.c.feature, feature_tags.c.type, feature_tags.c.value)
    return {
        (row.feature, row.type, row.value)
        for chunk in chunks(dict.fromkeys(names))
        for row in work.tx.db.execute(query.where(feature_tags.c.feature.in_(chunk)))
    }


def _create_tags(work: ImportWork, pairs: Sequence[tuple[str, str]]) -> None:
    """Create the tags that do not exist; `pairs` of type and value."""
    values = list(dict.fromkeys(value for _, value in pairs))
    query = select(tags.c.type, tags.c.value)
    stored = {
        (row.type, row.value)
        for chunk in chunks(values)
        for row in work.tx.db.execute(query.where(tags.c.value.in_(chunk)))
    }
    new = [pair for pair in pairs if pair not in stored]
    if new:
        rows = [{"type": kind, "value": value, "created_at": work.tx.now} for kind, value in new]
        work.tx.db.execute(insert(tags), rows)
    for kind, value in new:
        work.tx.record_event("tag-created", data={"type": kind, "value": value})


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
    rows = [_context_field(work, each) for each in new]
    if rows:
        work.tx.db.execute(insert(context_fields), rows)
    made = {each["name"]: each for chunk in chunks(row["name"] for row in rows) for each in find_fields(work.tx, chunk)}
    for row in rows:
        work.tx.record_event("context-field-created", project=row["project"], data=made[row["name"]])


def _context_field(work: ImportWork, field: Json) -> dict[str, Any]:
    return {
        "name": field["name"],
        "description": field.get("description"),
        "stickiness": field.get("stickiness", False),
        "sort_order": 0,
        "legal_values": field.get("legalValues", []),
        "project": work.data.project if field.get("project") else None,
        "created_at": work.tx.now,
    }


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
