"""How changes of what flags share are undone: segments, context fields and strategy types."""

from __future__ import annotations

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import context_fields, segments, strategy_types
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.subjects import Path, Subject, held_of, named


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


def read_field(tx: Tx, change: Change) -> Side:
    """Return the context field; with the strategies that constrain it if the event is the one of a new field."""
    name = held_of(change)["name"]
    try:
        found = context_fields.find(tx, name)
    except CallerError:
        return None
    uses = context_fields.strategies_using(tx, name) if change.before is None else []
    return found | ({"strategies": uses} if uses else {})


def restore_field(tx: Tx, change: Change) -> None:
    """Delete the context field that was created; else make it what it was."""
    if change.before is None:
        context_fields.remove(tx, held_of(change)["name"])
    else:
        context_fields.put_back(tx, change.before)


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


SEGMENT = Subject("segment", read_segment, restore_segment, named("segment", "id"), segment_uses)
FIELD = Subject("context field", read_field, restore_field, named("context field", "name"))
STRATEGY_TYPE = Subject("strategy type", read_strategy_type, restore_strategy_type, named("strategy type", "name"))
