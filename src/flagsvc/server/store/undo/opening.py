"""Finds a flag that an undo would leave on for everyone, because its last active strategy goes."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.server.store.resources import feature_environments, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.of_descriptions import FLAG
from flagsvc.server.store.undo.of_flags import STATE, STRATEGY
from flagsvc.server.store.undo.subjects import Subject, held_of, place_of
from flagsvc.server.store.undo.table import row_of

OPENED = "it would leave {} on in {} without an active strategy, so everyone would get the flag there: switch the flag off first"


def find_opened(tx: Tx, changes: Sequence[Change]) -> str | None:
    """Return that the undo of changes would open a flag to everyone, with its name and the environment; None if it does not.

    A flag that has no active strategy now is not looked at: it was open before, or comes back as it was.
    """
    going = {each.feature for each in changes if _subject_of(each) is FLAG and each.before is None}
    for place, undone in _by_place(changes).items():
        if place[0] not in going and _opens(tx, undone):
            return OPENED.format(*place)
    return None


def _by_place(changes: Sequence[Change]) -> dict[tuple[str | None, str | None], list[Change]]:
    """Return the changes of switches and strategies by flag and environment, where a strategy is among them."""
    found: dict[tuple[str | None, str | None], list[Change]] = {}
    for each in changes:
        if _subject_of(each) in (STATE, STRATEGY):
            found.setdefault((each.feature, each.environment), []).append(each)
    return {place: each for place, each in found.items() if any(_subject_of(one) is STRATEGY for one in each)}


def _opens(tx: Tx, changes: Sequence[Change]) -> bool:
    """Return whether the undo of the changes of one place takes the last active strategy and leaves the flag on."""
    place = place_of(tx, changes[0])
    state = feature_environments.find_state(tx, place)
    rows = strategies.list_rows(tx, place.feature, place.environment)
    active = {row.id for row in rows if not row.disabled}
    if state is None or not active:
        return False
    on = bool(state.enabled)
    for change in reversed(changes):
        before = change.before or {}
        if _subject_of(change) is STATE:
            on = bool(before.get("enabled"))
        else:
            active.discard(held_of(change)["id"])
            active.update([before["id"]] if before and not before["disabled"] else [])
    return on and not active


def _subject_of(change: Change) -> Subject | None:
    return row_of(change.type).subject
