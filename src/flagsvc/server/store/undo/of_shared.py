"""How changes of what flags share are undone: segments, context fields and strategy types."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import context_fields, segments, strategy_types
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.subjects import Path, Subject, held_of, in_turn, named
from flagsvc.server.store.upsert import chunks


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
