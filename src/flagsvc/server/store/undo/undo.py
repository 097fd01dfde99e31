"""Undoes one event, or all events of an action, as new events of one transaction, unless a later event stands in the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import or_, select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.event_kinds import WHOLE_ACTION, kind_of, sentence_of
from flagsvc.server.store.resources.features import find_all
from flagsvc.server.store.schema import events
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.opening import find_openings
from flagsvc.server.store.undo.subjects import (
    Change,
    Path,
    Subject,
    find_action,
    find_change,
    may_see,
    owner_of,
    require_action,
    to_change,
)

REFUSED = "This cannot be undone: "
UNSEEN = "something was changed that only administrators see"


class Obstacle(NamedTuple):
    """Why changes cannot be undone: a reason, or the permissions of which one is missing. `later` is the event in the way, or 0."""

    reason: str
    permissions: tuple[str, ...] = ()
    later: int = 0


def undo_event(tx: Tx, number: int) -> list[Change]:
    """Undo an event, and return what was undone. Raises CallerError: 403, 404, and 409 with the reason."""
    return _undo(tx, changes_of(tx, number))


def undo_action(tx: Tx, action: str) -> list[Change]:
    """Undo all events of an action, and return them. Raises CallerError: 403, 404, and 409 with the reason."""
    return _undo(tx, require_action(tx, action))


def changes_of(tx: Tx, number: int) -> list[Change]:
    """Return what the undo of an event undoes: it alone, or all of the action that it stands for. Raises CallerError (404)."""
    change = find_change(tx, number)
    if kind_of(change.type).subject is WHOLE_ACTION and change.action is not None:
        return find_action(tx, change.action)
    return [change]


def find_obstacle(tx: Tx, actor: Actor | None, changes: Sequence[Change]) -> Obstacle | None:
    """Return what keeps a caller from undoing changes: their kind, or a permission. None if nothing does.

    It does not look at the present state.
    """
    owners: Mapping[str, str] | None = None
    for change in changes:
        undo = kind_of(change.type).undo
        if isinstance(undo, str):
            return Obstacle(undo)
        if actor is None or undo.subject is WHOLE_ACTION or any(map(actor.may, undo.permissions)):
            continue
        if owners is None:
            owners = _read_owners(tx, changes)
        project = owners.get(change.feature or "", change.project) if undo.scope is owner_of else undo.scope(tx, change)
        if not any(actor.may(each, project=project, environment=change.environment) for each in undo.permissions):
            return Obstacle(f"needs {' or '.join(undo.permissions)}", undo.permissions)
    return None


def _read_owners(tx: Tx, changes: Sequence[Change]) -> dict[str, str]:
    """Return the projects that the flags of changes are in now. All are read at once: an import may have changed thousands."""
    names = [change.feature for change in changes if change.feature is not None]
    return {row.name: row.project for row in find_all(tx, names)}


def foresee(tx: Tx, actor: Actor | None, changes: Sequence[Change]) -> Obstacle | None:
    """Return what keeps a caller from undoing changes: as `find_obstacle`, and what is there now.

    For a single event this is what was changed later. For all it is a flag that would be on for everyone.
    """
    obstacle = find_obstacle(tx, actor, changes)
    if obstacle is not None:
        return obstacle
    if len(changes) == 1 and _find_touched(tx, changes):
        return find_later_change(tx, actor, changes[0])
    return _find_opened(tx, actor, changes)


def _find_opened(tx: Tx, actor: Actor | None, changes: Sequence[Change]) -> Obstacle | None:
    """Return that the undo of changes would open a flag that was not open before; None if it does not."""
    refused = (each for each in find_openings(tx, changes) if each.reason)
    return next((_name_event(each.reason, actor, each.loss) for each in refused), None)


def _undo(tx: Tx, changes: list[Change]) -> list[Change]:
    """Undo changes, the last one first. Raises CallerError."""
    obstacle = find_obstacle(tx, tx.actor, changes)
    if obstacle is not None:
        name = "PermissionError" if obstacle.permissions else "ConflictError"
        raise CallerError(name, f"{REFUSED}{obstacle.reason}")
    opened = _find_opened(tx, tx.actor, changes)
    touched = {change.id for change in _find_touched(tx, changes)}
    for together in _group(reversed(changes)):
        for change in _find_touched(tx, [each for each in together if each.id in touched])[:1]:
            raise CallerError("ConflictError", f"{REFUSED}{find_later_change(tx, tx.actor, change).reason}")
        _restore(tx, together)
    if opened is not None:
        raise CallerError("ConflictError", f"{REFUSED}{opened.reason}")
    return changes


def _find_touched(tx: Tx, changes: Sequence[Change]) -> list[Change]:
    """Return the events whose part of the database has changed since.

    The last event of its kind in an action is not among them before its undo begins, and an earlier one is not once the later ones
    are undone.
    """
    found: list[Change] = []
    flags = _read_owners(tx, changes)
    for subject in dict.fromkeys(map(_subject_of, changes)):
        of_subject = [change for change in changes if _subject_of(change) is subject]
        for change, side in zip(of_subject, subject.read(tx, of_subject), strict=True):
            if side != change.after or (change.feature not in flags and _is_part_of_a_flag(subject, change)):
                found.append(change)
    return found


def _is_part_of_a_flag(subject: Subject, change: Change) -> bool:
    """Return whether an event changes a part of a flag: its links, but not the flag as a whole."""
    return any(path[0] == "flag" and len(path) > len(("flag", change.feature)) for path in subject.paths(change))


def _group(changes: Iterable[Change]) -> list[list[Change]]:
    """Return changes in groups of a subject that are undone together, each group of different flags.

    The changes of a flag keep their order. A change that may touch more than its flag keeps its place among all changes. Several
    such changes share a group where they follow each other and have different paths.
    """
    groups: dict[tuple[int, Subject], list[Change]] = {}
    last: dict[str, int] = {}
    base = highest = 0
    seen: set[tuple[Path, ...]] = set()
    for change in changes:
        subject = _subject_of(change)
        if subject.together and change.feature is not None:
            last[change.feature] = level = max(last.get(change.feature, 0), base) + 1
        else:
            paths = subject.paths(change)
            if not subject.together or highest > base or (base, subject) not in groups or paths in seen:
                base, seen = highest + 1, set()
            seen.add(paths)
            level = base
        highest = max(highest, level)
        groups.setdefault((level, subject), []).append(change)
    return [groups[key] for key in sorted(groups, key=lambda key: key[0])]


def find_later_change(tx: Tx, actor: Actor | None, change: Change) -> Obstacle:
    """Return that something was changed later, with the event that did it if a stored one tells."""
    return _name_event(f"the {_subject_of(change).word} was changed later", actor, find_later(tx, change))


def _name_event(reason: str, actor: Actor | None, later: Change | None) -> Obstacle:
    """Return a reason with the event behind it, if there is one. Of an event that the caller may not see, it says only that."""
    if later is not None and not may_see(actor, later):
        return Obstacle(f"{reason}: {UNSEEN}")
    return Obstacle(reason) if later is None else Obstacle(f"{reason}: {tell(later)}", later=later.id)


def _subject_of(change: Change) -> Subject:
    subject = kind_of(change.type).subject
    assert subject is not None
    return subject


def _restore(tx: Tx, changes: Sequence[Change]) -> None:
    """Set back what events of a subject changed. Raises CallerError (409) with the reason for which that is not possible."""
    try:
        _subject_of(changes[0]).restore(tx, changes)
    except CallerError as error:
        raise CallerError("ConflictError", f"{REFUSED}{error.message}", error.details) from error


MOST = 5000
"""The most later events that are looked at."""
ACROSS = "feature-dependency-added"
"""The type of the events of a flag that use another one."""


def find_later(tx: Tx, change: Change) -> Change | None:
    """Return the newest event after an event that changed the same, or that uses it; None if no stored event tells."""
    subject = kind_of(change.type).subject
    own = () if subject is None else subject.paths(change)
    event = events.c
    query = select(events).where(event.id > change.id, or_(event.action.is_(None), event.action != change.action))
    if change.feature is not None:
        query = query.where(or_(event.feature == change.feature, event.feature.is_(None), event.type == ACROSS))
    rows = tx.db.execute(query.order_by(event.id.desc()).limit(MOST))
    return next((later for row in rows if _touches(later := to_change(row), own)), None)


def _touches(later: Change, own: Iterable[Path]) -> bool:
    subject = kind_of(later.type).subject
    if subject is None:
        return False
    paths = (*subject.paths(later), *subject.uses(later))
    return any(_overlap(one, other) for one in own for other in paths)


def _overlap(one: Path, other: Path) -> bool:
    """Return whether one of two parts of the database contains the other."""
    return all(left == right for left, right in zip(one, other, strict=False))


def tell(later: Change) -> str:
    """Return what an event did, by whom and when."""
    return f"{sentence_of(later, later.by)} on {later.at:%Y-%m-%d at %H:%M:%S} UTC (event {later.id})"
