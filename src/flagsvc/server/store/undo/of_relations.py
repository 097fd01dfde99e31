"""How changes of what a flag belongs to or uses are undone: parents, links, tags, segments, context fields and strategy types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from flagsvc.server.store.event_views import Side
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
    written,
)


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
    tags.give(tx, projects, [_tagged(each) for each in changes if each.before is not None])


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


PARENTS = in_turn("list of parents", read_parents, restore_parents, of_flag("dependencies"), parents_uses)
LINKS = Subject("list of links", read_links, restore_links, of_flag("links"))
TAGGING = Subject("tag", read_taggings, restore_taggings, tagging_paths)
TAG = in_turn("tag", read_tag, restore_tag, named("tag", "type", "value"))
TAG_TYPE = written(
    "tag type",
    tag_types.WRITER,
    tag_types.remove,
    paths=named("tag", "name"),
    belongings=lambda tx, names: {name: {"tags": tags} for name in names if (tags := tag_types.tags_of(tx, name))},
)


def segment_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the context fields that the segment needs after the event."""
    return tuple(("context field", each["contextName"]) for each in (change.after or {}).get("constraints", ()))


SEGMENT = written(
    "segment",
    segments.WRITER,
    segments.remove,
    uses=segment_uses,
    belongings=lambda tx, numbers: {
        number: {"strategies": uses} for number in numbers if (uses := segments.uses_of(tx, number))
    },
)
FIELD = written(
    "context field",
    context_fields.WRITER,
    context_fields.remove,
    belongings=lambda tx, names: {
        name: {"strategies": segments.strategies_to_json(rows)}
        for name, rows in context_fields.rows_using(tx, names).items()
    },
    together=True,
)
STRATEGY_TYPE = written(
    "strategy type",
    strategy_types.WRITER,
    strategy_types.remove,
    belongings=lambda tx, names: {name: {"used": True} for name in names if strategy_types.is_used(tx, name)},
)
