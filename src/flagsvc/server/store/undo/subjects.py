"""The events that are undone, and what a row of the undo table needs: how a subject is read and set back, as its events hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Row, select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.event_views import Side
from flagsvc.server.store.resources.features import find, find_all
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Tx
from flagsvc.server.store.writer import Writer, nothing_more


class Change(NamedTuple):
    """An event: `before` and `after` are whole, None for nothing. `by` made it `at` a time. Events done together share `action`."""

    id: int
    type: str
    project: str | None
    environment: str | None
    feature: str | None
    before: Side
    after: Side
    by: str
    by_id: int | None
    at: datetime
    way: str | None
    action: str | None


class Touched(NamedTuple):
    """What an event of a type touched `at` a time; None is every environment, and no project or each."""

    type: str
    environment: str | None
    project: str | None
    at: datetime


def find_change(tx: Tx, number: int) -> Change:
    """Return an event. Raises CallerError (404)."""
    row = tx.db.execute(select(events).where(events.c.id == number)).first()
    if row is None:
        raise unknown_event(number)
    return to_change(row)


def unknown_event(number: int) -> CallerError:
    """Return the error (404) for an event that is not there, or that the caller may not see."""
    return not_found(f"There is no event {number}: it never was, or it is deleted by its age")


def find_action(tx: Tx, action: str) -> list[Change]:
    """Return the events that were done together, in their order; none for an unknown id."""
    rows = tx.db.execute(select(events).where(events.c.action == action).order_by(events.c.id))
    return [to_change(row) for row in rows]


def find_touched(tx: Tx, action: str, by_id: int) -> set[Touched]:
    """Return what an action of a caller has touched; nothing for one of another caller."""
    wanted = select(events.c.type, events.c.environment, events.c.project, events.c.created_at).distinct()
    rows = tx.db.execute(wanted.where(events.c.action == action, events.c.created_by_id == by_id))
    return {Touched(*row) for row in rows}


def require_action(tx: Tx, action: str) -> list[Change]:
    """Return the events that were done together, in their order. Raises CallerError (404)."""
    found = find_action(tx, action)
    if not found:
        raise unknown_action()
    return found


def unknown_action() -> CallerError:
    """Return the error (404) for an action that is not there, or of which the caller may see no event."""
    return not_found("There is no such action: it never was, or it is deleted by its age")


def may_see(actor: Actor | None, change: Change) -> bool:
    """Return whether a caller may see an event: as in the history, one without a project is for administrators.

    A caller also sees what they did themselves. None is the server itself.
    """
    return actor is None or change.project is not None or change.by_id == actor.id or actor.may("ADMIN")


def to_change(row: Row[Any]) -> Change:
    what = (row.id, row.type, row.project, row.environment, row.feature, row.before, row.data)
    return Change(*what, row.created_by, row.created_by_id, row.created_at, row.way, row.action)


Scope: TypeAlias = Callable[[Tx, Change], str | None]
Path: TypeAlias = tuple[str, ...]
"""A part of the database by names, the largest first: a flag, then its tags. A path that begins with another is a part of it."""
Paths: TypeAlias = Callable[[Change], tuple[Path, ...]]


def nowhere(change: Change) -> tuple[Path, ...]:
    return ()


class Subject(NamedTuple):
    """A part of the database that events change.

    `read` returns for each event what is there now, in the form of its `after`. `restore` makes it what the `before` of each event
    is, and records that; it raises CallerError. `word` is what people call it. `paths` are the parts of the database that an event
    changes, and `uses` the parts that its addition needs. Both tell which later event stands in the way of an undo.
    `together` says that an event of a flag touches only that flag, and that events of different paths are undone together.
    """

    word: str
    read: Callable[[Tx, Sequence[Change]], Sequence[Side]]
    restore: Callable[[Tx, Sequence[Change]], None]
    paths: Paths = nowhere
    uses: Paths = nowhere
    together: bool = True


def in_turn(
    word: str,
    read: Callable[[Tx, Change], Side],
    restore: Callable[[Tx, Change], None],
    paths: Paths = nowhere,
    uses: Paths = nowhere,
) -> Subject:
    """Return a subject whose events are read and undone in turn."""

    def restore_each(tx: Tx, changes: Sequence[Change]) -> None:
        for change in changes:
            restore(tx, change)

    return Subject(word, lambda tx, changes: [read(tx, each) for each in changes], restore_each, paths, uses, together=False)


def written(
    word: str,
    writer: Writer,
    remove: Callable[..., object],
    *,
    paths: Paths | None = None,
    uses: Paths = nowhere,
    aside: tuple[str, ...] = (),
    belongings: Callable[[Tx, Mapping[Any, Change]], Mapping[Any, Json]] = nothing_more,
    together: bool = False,
) -> Subject:
    """Return the subject of a writer. `remove` deletes what was created, by keys; it raises CallerError.

    The members of `aside` are no part of a change. `belongings` returns what new resources have by now, and an undo would take,
    by key; it gets the events of their creation.
    """

    def key_of(change: Change) -> Any:
        return held_of(change)[writer.key]

    def read(tx: Tx, changes: Sequence[Change]) -> list[Side]:
        there = writer.read_whole(tx, list(map(key_of, changes)))
        more = belongings(tx, {key_of(each): each for each in changes if each.before is None})
        return [as_held(there.get(key_of(each)), each, more) for each in changes]

    def as_held(whole: Json | None, change: Change, more: Mapping[Any, Json]) -> Side:
        if whole is None or change.after is None:
            return whole
        held = {name: value for name, value in change.after.items() if name not in writer.optional}
        now = {name: whole.get(name, value) for name, value in held.items()}
        now |= {name: whole[name] for name in writer.optional if name in whole}
        if change.before is None:
            return now | more.get(key_of(change), {})
        return now | {name: change.after[name] for name in aside}

    def restore(tx: Tx, changes: Sequence[Change]) -> None:
        unset = dict.fromkeys(writer.optional)
        if made := [key_of(each) for each in changes if each.before is None]:
            remove(tx, *made)
        writer.put(tx, *({**unset, **each.before} for each in changes if each.before is not None), back=True)

    return Subject(word, read, restore, paths or named(word, writer.key), uses, together)


def place_of(tx: Tx, change: Change) -> StrategyPlace:
    """Return the flag and the environment of an event, with the project that the flag is in now."""
    return places_of(tx, [change])[0]


def places_of(tx: Tx, changes: Sequence[Change]) -> list[StrategyPlace]:
    """Return the flags and the environments of events, with the projects that the flags are in now."""
    owners = {row.name: str(row.project) for row in find_all(tx, [change.feature or "" for change in changes])}
    return [
        StrategyPlace(owners.get(each.feature or "", each.project or ""), each.feature or "", each.environment or "")
        for each in changes
    ]


def owner_of(tx: Tx, change: Change) -> str | None:
    """Return the project that the flag of an event is in now; that of the event without the flag."""
    row = None if change.feature is None else find(tx, change.feature)
    return change.project if row is None else str(row.project)


def no_project(tx: Tx, change: Change) -> None:
    """Return no project: a permission for the whole server is needed."""


def same_project(tx: Tx, change: Change) -> str | None:
    """Return the project that something belongs to before and after an event; None where that changes."""
    found = {side.get("project") for side in (change.before, change.after) if side is not None}
    return found.pop() if len(found) == 1 else None


def held_of(change: Change) -> Mapping[str, Any]:
    """Return what an event tells of its subject: after it, or else before it."""
    return change.after or change.before or {}


def of_flag(*rest: str) -> Paths:
    """Return what gives the path of a part of the event's flag."""
    return lambda change: (("flag", change.feature or "", *rest),)


def in_environment(*rest: str) -> Paths:
    """Return what gives the paths of a part of the event's flag in its environment."""

    def paths(change: Change) -> tuple[Path, ...]:
        project, environment, flag = change.project or "", change.environment or "", change.feature or ""
        return ("flag", flag, "in", environment, *rest), ("project", project, "in", environment, flag, *rest)

    return paths


def named(word: str, *members: str) -> Paths:
    """Return what gives the path of something that members of the event name."""
    return lambda change: ((word, *(str(held_of(change).get(name)) for name in members)),)
