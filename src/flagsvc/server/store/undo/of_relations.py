"""How changes of what a flag belongs to or uses are undone: parents, links, tags, segments, context fields and strategy types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import (
    context_fields,
    dependencies,
    features,
    links,
    segments,
    strategy_types,
    tag_types,
    tags,
)
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.subjects import (
    Change,
    Path,
    Subject,
    held_of,
    in_turn,
    named,
    of_flag,
    owner_of,
    places_of,
)
from flagsvc.server.store.upsert import chunks


def read_parents(tx: Tx, change: Change) -> Side:
    """Return the event with the parents that the flag has now; None where the event left none and there is none."""
    parents = dependencies.parents_of(tx, change.feature or "")
    return None if not parents and change.after is None else {**(change.after or {}), "dependencies": parents}


def restore_parents(tx: Tx, change: Change) -> None:
    """Give the flag the parents that it had."""
    wanted = (change.before or {})["dependencies"]
    dependencies.put_back(tx, owner_of(tx, change) or "", change.feature or "", wanted)


def parents_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the flags that are parents after the event."""
    return tuple(("flag", each["feature"]) for each in (change.after or {}).get("dependencies", ()))


def read_links(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the events with the links that the flags have now."""
    held = links.links_of(tx, (each.feature or "" for each in changes))
    return [{**(each.after or {}), "links": held.get(each.feature or "", [])} for each in changes]


def restore_links(tx: Tx, changes: Sequence[Change]) -> None:
    """Give the flags the links that they had."""
    projects = {place.feature: place.project for place in places_of(tx, changes)}
    links.set_links(tx, projects, {each.feature or "": (each.before or {})["links"] for each in changes})


def _tagged(change: Change) -> tuple[str, str, str]:
    held = held_of(change)
    return change.feature or "", held["type"], held["value"]


def read_taggings(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the tags that the flags have."""
    held = tags.find_held(tx, (each.feature or "" for each in changes), list(map(held_of, changes)))
    return [held_of(each) if _tagged(each) in held else None for each in changes]


def restore_taggings(tx: Tx, changes: Sequence[Change]) -> None:
    """Take the tags off the flags, or give them back."""
    projects = {row.name: row.project for row in features.find_all(tx, [each.feature or "" for each in changes])}
    tags.remove_held(tx, projects, [_tagged(each) for each in changes if each.before is None])
    tags.give_back(tx, projects, [_tagged(each) for each in changes if each.before is not None])


def tagging_paths(change: Change) -> tuple[Path, ...]:
    """Return the paths of the tag on the flag, and of the tag."""
    held, flag = held_of(change), change.feature or ""
    return ("flag", flag, "tags", held["type"], held["value"]), ("tag", held["type"], held["value"], flag)


def read_tag(tx: Tx, change: Change) -> Side:
    """Return the tag with the members that the event holds, and with the flags that have it."""
    held = held_of(change)
    whole = tags.find_whole(tx, held["type"], held["value"])
    if whole is None or change.after is None:
        return whole
    return {name: value for name, value in whole.items() if name in change.after or (name == "features" and value)}


def restore_tag(tx: Tx, change: Change) -> None:
    """Delete the tag that was created; else create it again, for the flags that had it."""
    held = held_of(change)
    if change.before is None:
        tags.remove(tx, held["type"], held["value"])
    else:
        tags.put_back(tx, held)


def tag_scope(tx: Tx, change: Change) -> str | None:
    """Return the project of the flags for which a tag was created.

    None for a tag that was created alone, for flags of several projects, and for an old event that names no action.
    """
    if change.action is None:
        return None
    event = events.c
    together = event.action == change.action, event.type.in_(("feature-tagged", "feature-created"))
    found = tx.db.execute(select(event.project).where(*together).distinct().limit(2)).scalars().all()
    return found[0] if len(found) == 1 else None


def read_tag_type(tx: Tx, change: Change) -> Side:
    """Return the tag type with the members that the event holds, and with its tags."""
    whole = tag_types.find_whole(tx, held_of(change)["name"])
    held = change.after
    if whole is None or held is None:
        return whole
    if change.before is not None:
        return {name: whole[name] for name in held}
    found = {name: value for name, value in whole.items() if name in held or (name == "tags" and value)}
    return {**held, **found}


def restore_tag_type(tx: Tx, change: Change) -> None:
    """Delete the tag type that was created; else make it what it was, with its tags if it was deleted."""
    held = change.before
    if held is None:
        tag_types.remove(tx, held_of(change)["name"])
    elif change.after is None:
        tag_types.put_back(tx, held)
    else:
        tag_types.change(tx, held["name"], held)


PARENTS = in_turn("list of parents", read_parents, restore_parents, of_flag("dependencies"), parents_uses)
LINKS = Subject("list of links", read_links, restore_links, of_flag("links"))
TAGGING = Subject("tag", read_taggings, restore_taggings, tagging_paths)
TAG = in_turn("tag", read_tag, restore_tag, named("tag", "type", "value"))
TAG_TYPE = in_turn("tag type", read_tag_type, restore_tag_type, named("tag", "name"))


def read_segment(tx: Tx, change: Change) -> Side:
    """Return the segment; with the strategies that use it if the event holds them, or if it is one of a new segment."""
    try:
        found = segments.find(tx, held_of(change)["id"])
    except CallerError:
        return None
    uses = segments.uses_of(tx, found["id"])
    held = change.after or {}
    told = "strategies" in held or (change.before is None and uses)
    return found | ({"strategies": uses} if told else {})


def restore_segment(tx: Tx, change: Change) -> None:
    """Delete the segment that was created; else make it what it was, with its id."""
    if change.before is None:
        segments.remove(tx, held_of(change)["id"])
    else:
        segments.put_back(tx, change.before)


def segment_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the context fields that the segment needs after the event."""
    return tuple(("context field", each["contextName"]) for each in (change.after or {}).get("constraints", ()))


def read_fields(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the context fields; with the strategies that constrain a field if the event is the one of a new field."""
    names = [held_of(each)["name"] for each in changes]
    fields = {each["name"]: each for chunk in chunks(names) for each in context_fields.find_several(tx, chunk)}
    used = context_fields.rows_using(tx, [each["name"] for each in map(held_of, _made(changes))])
    uses = {name: {"strategies": segments.strategies_to_json(rows)} for name, rows in used.items()}
    return [fields[name] | uses.get(name, {}) if name in fields else None for name in names]


def _made(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change.before is None]


def restore_fields(tx: Tx, changes: Sequence[Change]) -> None:
    """Delete the context fields that were created; make the others what they were."""
    context_fields.remove_all(tx, [held_of(each)["name"] for each in _made(changes)])
    context_fields.put_back(tx, [change.before for change in changes if change.before is not None])


def read_strategy_type(tx: Tx, change: Change) -> Side:
    """Return the strategy type with the members that the event holds; and that it is used if it is new."""
    name, held = held_of(change)["name"], change.after
    try:
        found = strategy_types.find_whole(tx, name)
    except CallerError:
        return None
    used: Json = {"used": True} if change.before is None and strategy_types.is_used(tx, name) else {}
    return {key: value for key, value in found.items() if held is None or key in held} | used


def restore_strategy_type(tx: Tx, change: Change) -> None:
    """Delete the strategy type that was created; else make it what it was."""
    if change.before is None:
        strategy_types.remove(tx, held_of(change)["name"])
    else:
        strategy_types.put_back(tx, change.before)


SEGMENT = in_turn("segment", read_segment, restore_segment, named("segment", "id"), segment_uses)
FIELD = Subject("context field", read_fields, restore_fields, named("context field", "name"))
STRATEGY_TYPE = in_turn("strategy type", read_strategy_type, restore_strategy_type, named("strategy type", "name"))
