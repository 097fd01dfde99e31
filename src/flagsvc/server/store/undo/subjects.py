"""What a row of the undo table needs: how a subject is read and set back, in the form that its events hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources.features import find, find_all
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change

Scope: TypeAlias = Callable[[Tx, Change], str | None]
Path: TypeAlias = tuple[str, ...]
"""A part of the database by names, the largest first: a flag, then its tags. A path that begins with another is a part of it."""
Paths: TypeAlias = Callable[[Change], tuple[Path, ...]]


def nowhere(change: Change) -> tuple[Path, ...]:
    """Return no path."""
    return ()


class Subject(NamedTuple):
    """A part of the database that events change.

    `read` returns for each event what is there now, in the form of its `after`. `restore` makes it what the `before` of each event
    is, and records that; it raises CallerError. `word` is what people call it. `paths` are the parts of the database that an event
    changes, and `uses` those that must be there for what it adds: they tell which later event stands in the way of an undo.
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

    return Subject(
        word, lambda tx, changes: [read(tx, each) for each in changes], restore_each, paths, uses, together=False
    )


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
        flag, environment = change.feature or "", change.environment or ""
        return ("flag", flag, "in", environment, *rest), (
            "project",
            change.project or "",
            "in",
            environment,
            flag,
            *rest,
        )

    return paths


def named(word: str, *members: str) -> Paths:
    """Return what gives the path of something that members of the event name."""
    return lambda change: ((word, *(str(held_of(change).get(name)) for name in members)),)
