"""The life cycle of the configuration as a table: state × event → state, actions. It has no I/O, no clock and no random numbers.

The table says when requests are answered and which documents are accepted; `poller` carries the actions out (specification:
States and transitions; behaviour: First configuration; Failures; Documents that are not accepted).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple

from flagsvc.core.errors import FlagsvcError, UpstreamError


class State(StrEnum):
    """Where the served configuration came from, and whether the upstream has confirmed it."""

    COLD = "cold"
    """There is no configuration yet: requests get 503."""
    RESTORED = "restored"
    """Read from storage; the upstream has not answered yet."""
    BOOTSTRAPPED = "bootstrapped"
    """From the bootstrap address; the upstream has not answered yet."""
    FRESH = "fresh"
    """From the upstream, and the last poll succeeded."""
    STALE = "stale"
    """From the upstream, but the last poll failed: the upstream is unreachable or has an error."""
    REFUSED = "refused"
    """From the upstream, but its last answer cannot be used: the document is incomplete or wrong, or it refuses the token."""


class Event(StrEnum):
    """What can happen to the configuration."""

    RESTORED = "restored"
    """A stored document was read."""
    BOOTSTRAPPED = "bootstrapped"
    """The bootstrap document arrived."""
    FETCHED = "fetched"
    """A poll returned a good document."""
    SAME = "same"
    """A poll returned, byte for byte, the document that is served."""
    NOT_MODIFIED = "not-modified"
    """A poll returned 304: the document with the sent ETag is current. Also for a file that has not changed."""
    EMPTY = "empty"
    """A poll returned a document without toggles, for the first time, while there were some before."""
    UNUSABLE = "unusable"
    """A poll returned a document that is incomplete, not JSON or not of the right shape."""
    REFUSED = "refused"
    """The upstream refused the token (401, 403)."""
    FAILED = "failed"
    """A poll failed in any other way."""


class Action(Enum):
    """What the poller must do."""

    REPLACE = "replace"
    """Serve the new snapshot."""
    KEEP_ETAG = "keep-etag"
    """Send this document's ETag with the next poll."""
    DROP_ETAG = "drop-etag"
    """Send no ETag: the served document did not come from the upstream."""
    SAVE = "save"
    """Write the document to storage."""
    HOLD_BACK = "hold-back"
    """Log that an empty document is not used until the next poll confirms it."""


class Pace(Enum):
    """When to poll next."""

    NORMAL = "normal"
    """After the refresh interval."""
    SOON = "soon"
    """Within seconds after any failure: there is no configuration, and the upstream may just be starting."""
    BACK_OFF = "back-off"
    """After growing pauses, up to a ceiling."""
    SLOW = "slow"
    """After half to all of the longest pause, already after the first failure."""


class Transition(NamedTuple):
    """One cell of the table."""

    state: State
    pace: Pace
    actions: tuple[Action, ...]


Cell = tuple[State, tuple[Action, ...]]

_STATES = tuple(State)
_COLD: Cell = (State.COLD, ())
_RESTORED: Cell = (State.RESTORED, ())
_BOOTSTRAPPED: Cell = (State.BOOTSTRAPPED, ())
_FRESH: Cell = (State.FRESH, ())
_STALE: Cell = (State.STALE, ())
_REFUSED: Cell = (State.REFUSED, ())
_LOAD: Cell = (State.RESTORED, (Action.REPLACE, Action.KEEP_ETAG))
_BOOT: Cell = (State.BOOTSTRAPPED, (Action.REPLACE, Action.DROP_ETAG))
_TAKE: Cell = (State.FRESH, (Action.REPLACE, Action.KEEP_ETAG, Action.SAVE))
_AGREE: Cell = (State.FRESH, (Action.KEEP_ETAG,))
_ADOPT: Cell = (State.FRESH, (Action.KEEP_ETAG, Action.SAVE))


def _hold_back(cell: Cell) -> Cell:
    return cell[0], (Action.HOLD_BACK,)


# A stored document replaces nothing. A bootstrap document replaces only a stored one. The upstream's document replaces any other.
# A 304 confirms the document whose ETag was sent. That is never a bootstrap document, so a 304 does not confirm one.
_ROWS: tuple[tuple[Event, Pace, tuple[Cell, ...]], ...] = (
    #                             cold   restored   bootstrapped   fresh   stale   refused
    (Event.RESTORED, Pace.NORMAL, (_LOAD, _RESTORED, _BOOTSTRAPPED, _FRESH, _STALE, _REFUSED)),
    (Event.BOOTSTRAPPED, Pace.NORMAL, (_BOOT, _BOOT, _BOOTSTRAPPED, _FRESH, _STALE, _REFUSED)),
    (Event.FETCHED, Pace.NORMAL, (_TAKE, _TAKE, _TAKE, _TAKE, _TAKE, _TAKE)),
    (Event.SAME, Pace.NORMAL, (_COLD, _AGREE, _ADOPT, _AGREE, _AGREE, _AGREE)),
    (Event.NOT_MODIFIED, Pace.NORMAL, (_COLD, _FRESH, _BOOTSTRAPPED, _FRESH, _FRESH, _FRESH)),
    (Event.EMPTY, Pace.NORMAL, (_TAKE, *map(_hold_back, (_RESTORED, _BOOTSTRAPPED, _FRESH, _STALE, _REFUSED)))),
    (Event.UNUSABLE, Pace.BACK_OFF, (_COLD, _RESTORED, _BOOTSTRAPPED, _REFUSED, _REFUSED, _REFUSED)),
    (Event.REFUSED, Pace.SLOW, (_COLD, _RESTORED, _BOOTSTRAPPED, _REFUSED, _REFUSED, _REFUSED)),
    (Event.FAILED, Pace.BACK_OFF, (_COLD, _RESTORED, _BOOTSTRAPPED, _STALE, _STALE, _STALE)),
)


def _pace(before: State, pace: Pace) -> Pace:
    """Return the pace of a cell: a failure without any configuration is followed by a poll soon."""
    return Pace.SOON if before is State.COLD and pace is not Pace.NORMAL else pace


TABLE: dict[tuple[State, Event], Transition] = {
    (before, event): Transition(after, _pace(before, pace), actions)
    for event, pace, cells in _ROWS
    for before, (after, actions) in zip(_STATES, cells, strict=True)
}
"""The transition for every pair of state and event."""

POLL_EVENTS = tuple(event for event in Event if event not in (Event.RESTORED, Event.BOOTSTRAPPED))
"""The events of a poll. The other events do not involve the upstream."""

_SETTLING = (Event.FETCHED, Event.SAME, Event.NOT_MODIFIED)
_OF_KIND = {"unauthorized": Event.REFUSED, "document": Event.UNUSABLE}


@dataclass(frozen=True)
class LifecycleStatus:
    """The state, the number of failed polls in a row, and whether an empty document waits to be confirmed."""

    state: State = State.COLD
    failures: int = 0
    is_empty_pending: bool = False


def advance(status: LifecycleStatus, event: Event) -> tuple[LifecycleStatus, Transition]:
    """Return the status after an event, and the transition that led there."""
    step = TABLE[status.state, event]
    failures = status.failures
    if event in POLL_EVENTS:
        failures = 0 if step.pace is Pace.NORMAL else failures + 1
    is_empty_pending = Action.HOLD_BACK in step.actions or (status.is_empty_pending and event not in _SETTLING)
    return LifecycleStatus(step.state, failures, is_empty_pending), step


def classify_document(names: Collection[str], served: Collection[str] | None, is_empty_pending: bool) -> Event:
    """Return the event of a good document, from its toggles and the served ones (None: there is no configuration).

    If there were toggles, a document without toggles counts only when the next one is empty too: a flag server that has lost its
    database must not turn everything off. `is_empty_pending` tells that the last document was empty.
    """
    is_emptied = not names and (served is None or len(served) > 0)
    return Event.EMPTY if is_emptied and not is_empty_pending else Event.FETCHED


def classify_error(error: FlagsvcError) -> Event:
    """Return the event of a failed poll. Any error except UpstreamError is about the document."""
    return _OF_KIND.get(error.kind, Event.FAILED) if isinstance(error, UpstreamError) else Event.UNUSABLE
