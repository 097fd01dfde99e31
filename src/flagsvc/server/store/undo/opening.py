"""Finds the flags that an undo opens to everyone: they are on in an environment after it, without an active strategy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import or_, select

from flagsvc.server.store.event_kinds import ROWS, kind_of
from flagsvc.server.store.event_views import Side
from flagsvc.server.store.resources import features
from flagsvc.server.store.schema import events, feature_environments, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.of_resources import ARCHIVING, FLAG, STATE, STRATEGY
from flagsvc.server.store.undo.subjects import Change, Subject, held_of, to_change
from flagsvc.server.store.upsert import chunks

Place: TypeAlias = tuple[str, str]
"""A flag and an environment."""
LEAVES = "it would leave {} on in {} without an active strategy, so everyone would get the flag there: switch the flag off first"
SWITCHES = "it would switch {} on in {} without an active strategy, so everyone would get the flag there"
OF_STRATEGIES: Final = tuple(row.type for row in ROWS if row.subject is STRATEGY)


class Opening(NamedTuple):
    """A flag that an undo opens to everyone in an environment.

    `reason` says why the undo is refused; it is empty where the flag was on for everyone before, too. `loss` is the event that
    took its last active strategy since; None where the undo itself takes it.
    """

    feature: str
    environment: str
    reason: str = ""
    loss: Change | None = None


@dataclass
class State:
    """A flag in an environment. `active` are the ids of its active strategies there."""

    enabled: bool
    archived: bool
    active: frozenset[str]

    @property
    def is_open(self) -> bool:
        """Whether everyone gets the flag, because no strategy says who does."""
        return self.enabled and not self.archived and not self.active


def find_openings(tx: Tx, changes: Sequence[Change]) -> list[Opening]:
    """Return the flags that the undo of changes opens to everyone. A flag that is open now is left out."""
    going = {each.feature for each in changes if _subject_of(each) is FLAG and each.before is None}
    states = _read_states(tx, {each.feature or "" for each in changes if _may_open(each)} - going)
    found = (_find_opening(tx, place, states[place], undone) for place, undone in _by_place(changes, states).items())
    return [each for each in found if each is not None]


def _may_open(change: Change) -> bool:
    """Return whether the undo of a change switches a flag, changes its strategies, or revives it."""
    subject = _subject_of(change)
    return subject in (STATE, STRATEGY) or (subject is ARCHIVING and not (change.before or {}).get("archivedAt"))


def _read_states(tx: Tx, flags: set[str]) -> dict[Place, State]:
    """Return the present states of flags, in each of their environments."""
    found: dict[Place, State] = {}
    for names in chunks(sorted(flags)):
        archived = {row.name: row.archived_at is not None for row in features.find_all(tx, names)}
        active = _read_active(tx, names)
        for row in tx.db.execute(select(feature_environments).where(feature_environments.c.feature.in_(names))):
            place = row.feature, row.environment
            found[place] = State(row.enabled, archived[row.feature], frozenset(active[place]))
    return found


def _read_active(tx: Tx, flags: Sequence[str]) -> defaultdict[Place, set[str]]:
    found: defaultdict[Place, set[str]] = defaultdict(set)
    column = strategies.c
    query = select(column.feature, column.environment, column.id).where(column.feature.in_(flags), ~column.disabled)
    for row in tx.db.execute(query):
        found[row.feature, row.environment].add(row.id)
    return found


def _by_place(changes: Iterable[Change], states: Iterable[Place]) -> dict[Place, list[Change]]:
    """Return the changes that may open a flag, by place. A change that revives a flag is at each place."""
    of_flag: defaultdict[str, list[Change]] = defaultdict(list)
    for change in filter(_may_open, changes):
        of_flag[change.feature or ""].append(change)
    found = {place: [each for each in of_flag[place[0]] if each.environment in (None, place[1])] for place in states}
    return {place: undone for place, undone in found.items() if undone}


def _find_opening(tx: Tx, place: Place, now: State, changes: Sequence[Change]) -> Opening | None:
    """Return that the undo of the changes of a place opens it; None if it does not."""
    after = now
    for change in reversed(changes):
        after = _undone(after, change, place[1])
    if now.is_open or not after.is_open:
        return None
    if now.active:
        return Opening(*place, LEAVES.format(*place))
    loss = _find_loss(tx, place, changes)
    return Opening(*place) if loss is None else Opening(*place, SWITCHES.format(*place), loss)


def _undone(state: State, change: Change, environment: str) -> State:
    before, subject = change.before or {}, _subject_of(change)
    if subject is STATE:
        return replace(state, enabled=bool(before.get("enabled")))
    if subject is STRATEGY:
        back = {before["id"]} if _is_active(change.before) else set()
        return replace(state, active=state.active - {held_of(change)["id"]} | back)
    enabled = environment in before["enabledIn"] if "enabledIn" in before else state.enabled
    return replace(state, enabled=enabled, archived=False)


def _find_loss(tx: Tx, place: Place, changes: Sequence[Change]) -> Change | None:
    """Return the newest event that took an active strategy of a place, after the first of these changes or together with them."""
    event, numbers = events.c, [each.id for each in changes]
    here = (event.feature == place[0]) & (event.environment == place[1]) & event.type.in_(OF_STRATEGIES)
    whole = (event.type == "feature-deleted") & (event.feature == place[0])
    around = (event.type == "environment-deleted") & (event.environment == place[1])
    since = event.id > numbers[0]
    if changes[0].action is not None:
        since = or_(since, event.action == changes[0].action)
    query = select(events).where(or_(here, whole, around), since, event.id.not_in(numbers)).order_by(event.id.desc())
    return next((change for row in tx.db.execute(query) if _takes(change := to_change(row))), None)


def _takes(change: Change) -> bool:
    """Return whether an event took an active strategy, or all that there was."""
    return _subject_of(change) is not STRATEGY or (_is_active(change.before) and not _is_active(change.after))


def _is_active(side: Side) -> bool:
    return side is not None and not side.get("disabled")


def _subject_of(change: Change) -> Subject | None:
    return kind_of(change.type).subject
