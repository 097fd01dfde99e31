"""The life of the configuration as a table: state × event → state, actions. No I/O, no clock, no random draw of its own.

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
    """Where the configuration that is served came from, and whether the upstream stands behind it."""

    COLD = "cold"
    """There is none yet: requests get 503."""
    RESTORED = "restored"
    """Read from storage; the upstream has not answered yet."""
    BOOTSTRAPPED = "bootstrapped"
    """From the bootstrap address; the upstream has not answered yet."""
    FRESH = "fresh"
    """The upstream's, and the last poll went well."""
    STALE = "stale"
    """The upstream's, but the last poll failed: nobody is there, or it is in trouble."""
    REJECTED = "rejected"
    """The upstream's, but what it answers cannot be used: a document that is cut off or wrong, or that it refuses the token."""


class Event(StrEnum):
    """What can happen to it."""

    RESTORED = "restored"
    """A stored document was read."""
    BOOTSTRAPPED = "bootstrapped"
    """The bootstrap document arrived."""
    FETCHED = "fetched"
    """A poll brought a good document."""
    SAME = "same"
    """A poll brought, byte for byte, the document that is served."""
    NOT_MODIFIED = "not-modified"
    """A poll was told that the document of the ETag sent is current."""
    EMPTY = "empty"
    """A poll brought a document without toggles, for the first time where there were some."""
    REJECTED = "rejected"
    """A poll brought a document that is cut off, not JSON or not of the right shape."""
    REFUSED = "refused"
    """The upstream refused the token (401, 403)."""
    FAILED = "failed"
    """A poll failed in any other way."""


class Action(Enum):
    """What the poller has to do."""

    REPLACE = "replace"
    """Serve the new snapshot."""
    KEEP_ETAG = "keep-etag"
    """Send this document's ETag with the next poll."""
    DROP_ETAG = "drop-etag"
    """Send no ETag: what is served is not a document the upstream gave one for."""
    SAVE = "save"
    """Write the document to storage."""
    HOLD_BACK = "hold-back"
    """Say that an empty document waits for the next poll to confirm it."""


class Pace(Enum):
    """When to poll next."""

    NORMAL = "normal"
    """After the refresh interval."""
    SOON = "soon"
    """Within seconds, whatever went wrong: nothing is served, and the upstream may be about to be there."""
    BACK_OFF = "back-off"
    """Ever later, up to a ceiling."""
    SLOW = "slow"
    """At the ceiling from the first time on."""


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
_REJECTED: Cell = (State.REJECTED, ())
_LOAD: Cell = (State.RESTORED, (Action.REPLACE, Action.KEEP_ETAG))
_BOOT: Cell = (State.BOOTSTRAPPED, (Action.REPLACE, Action.DROP_ETAG))
_TAKE: Cell = (State.FRESH, (Action.REPLACE, Action.KEEP_ETAG, Action.SAVE))
_AGREE: Cell = (State.FRESH, (Action.KEEP_ETAG,))
_ADOPT: Cell = (State.FRESH, (Action.KEEP_ETAG, Action.SAVE))


def _doubt(cell: Cell) -> Cell:
    return cell[0], (Action.HOLD_BACK,)


# What was stored never replaces anything; what was bootstrapped replaces only what was stored; the upstream's word is last.
# A 304 counts where the ETag sent belongs to what is served: never after a bootstrap.
_ROWS: tuple[tuple[Event, Pace, tuple[Cell, ...]], ...] = (
    #                             cold   restored   bootstrapped   fresh   stale   rejected
    (Event.RESTORED, Pace.NORMAL, (_LOAD, _RESTORED, _BOOTSTRAPPED, _FRESH, _STALE, _REJECTED)),
    (Event.BOOTSTRAPPED, Pace.NORMAL, (_BOOT, _BOOT, _BOOTSTRAPPED, _FRESH, _STALE, _REJECTED)),
    (Event.FETCHED, Pace.NORMAL, (_TAKE, _TAKE, _TAKE, _TAKE, _TAKE, _TAKE)),
    (Event.SAME, Pace.NORMAL, (_COLD, _AGREE, _ADOPT, _AGREE, _AGREE, _AGREE)),
    (Event.NOT_MODIFIED, Pace.NORMAL, (_COLD, _FRESH, _BOOTSTRAPPED, _FRESH, _FRESH, _FRESH)),
    (Event.EMPTY, Pace.NORMAL, (_TAKE, *map(_doubt, (_RESTORED, _BOOTSTRAPPED, _FRESH, _STALE, _REJECTED)))),
    (Event.REJECTED, Pace.BACK_OFF, (_COLD, _RESTORED, _BOOTSTRAPPED, _REJECTED, _REJECTED, _REJECTED)),
    (Event.REFUSED, Pace.SLOW, (_COLD, _RESTORED, _BOOTSTRAPPED, _REJECTED, _REJECTED, _REJECTED)),
    (Event.FAILED, Pace.BACK_OFF, (_COLD, _RESTORED, _BOOTSTRAPPED, _STALE, _STALE, _STALE)),
)


def _pace(before: State, pace: Pace) -> Pace:
    """Return the pace of a cell: a failure while nothing is served is another matter than one while something is."""
    return Pace.SOON if before is State.COLD and pace is not Pace.NORMAL else pace


TABLE: dict[tuple[State, Event], Transition] = {
    (before, event): Transition(after, _pace(before, pace), actions)
    for event, pace, cells in _ROWS
    for before, (after, actions) in zip(_STATES, cells, strict=True)
}
"""What follows from each event in each state. Every pair is there."""

POLLED = tuple(event for event in Event if event not in (Event.RESTORED, Event.BOOTSTRAPPED))
"""What a poll can bring; the others come from elsewhere, and say nothing of the upstream."""

_SETTLING = (Event.FETCHED, Event.SAME, Event.NOT_MODIFIED)
_OF_KIND = {"unauthorized": Event.REFUSED, "document": Event.REJECTED}


@dataclass(frozen=True)
class LifecycleStatus:
    """The state, the polls in a row that failed, and whether the last answer was an empty document that was held back."""

    state: State = State.COLD
    failures: int = 0
    doubt: bool = False


def advance(life: LifecycleStatus, event: Event) -> tuple[LifecycleStatus, Transition]:
    """Return what the configuration's life is after an event, and what to do."""
    step = TABLE[life.state, event]
    failures = life.failures
    if event in POLLED:
        failures = 0 if step.pace is Pace.NORMAL else failures + 1
    doubt = Action.HOLD_BACK in step.actions or (life.doubt and event not in _SETTLING)
    return LifecycleStatus(step.state, failures, doubt), step


def arrival(names: Collection[str], served: Collection[str] | None, doubt: bool) -> Event:
    """Return which event the arrival of a good document is, from the toggles in it and in what is served (None: nothing is).

    A document without toggles, where there were some, counts only when the next one is empty too (`doubt`): a flag server that
    has lost its database must not turn everything off.
    """
    emptied = not names and (served is None or len(served) > 0)
    return Event.EMPTY if emptied and not doubt else Event.FETCHED


def event_of(error: FlagsvcError) -> Event:
    """Return which event a failed poll is; what is no UpstreamError is about the document."""
    return _OF_KIND.get(error.kind, Event.FAILED) if isinstance(error, UpstreamError) else Event.REJECTED
