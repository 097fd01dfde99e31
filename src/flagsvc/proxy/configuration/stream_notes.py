"""How news of the upstream arrive, by its stream or by polls, for the status page and the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from flagsvc.core.errors import UpstreamError

CLOSED, BROKEN, SILENT, BEHIND, POLLING, RENEWED = "closed", "broken", "silent", "behind", "polling", "renewed"
NOT_OFFERED, THROTTLED, SERVER, UNREACHABLE = "not-offered", "throttled", "server", "unreachable"
ENDS: Final = {
    CLOSED: "the upstream ended the stream",
    BROKEN: "the stream broke",
    SILENT: "the stream was silent",
    BEHIND: "the stream did not tell of changes",
    POLLING: "the upstream asks for polls",
    RENEWED: "the token is new",
    NOT_OFFERED: "the upstream offers no stream",
    THROTTLED: "the upstream has no place for another stream",
    SERVER: "the upstream failed to open a stream",
    UNREACHABLE: "the upstream cannot be reached",
}
"""Why a stream has ended or was not opened → the same in words."""
CONNECTED, UPDATED, FETCH_MODE, OTHER = "unleash-connected", "unleash-updated", "fetch-mode", "other"
EVENTS: Final = (CONNECTED, UPDATED, FETCH_MODE, OTHER)
"""The events that are counted by their names. All others are OTHER."""
PASSING: Final = (408, 425)
"""Statuses that say nothing about what the upstream offers, beside 429 and those of servers."""
NOT_IMPLEMENTED: Final = 501


@dataclass
class StreamNotes:
    """News arrive by the stream if it `is_open`, else by polls, `since` a moment in seconds since the epoch.

    `why` says in words why there is no stream. `opened` counts streams, and `fallbacks` counts streams that have ended. `ends`
    also counts those that were not opened, by the reasons of ENDS. `events` counts by the names of EVENTS.
    """

    is_open: bool = False
    since: float = 0.0
    why: str = ""
    opened: int = 0
    fallbacks: int = 0
    events: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EVENTS, 0))
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))

    def open(self, now: float) -> None:
        """Note that the stream is open now."""
        self.is_open, self.since, self.why = True, now, ""
        self.opened += 1

    def close(self, now: float) -> bool:
        """Note that the stream is no longer open. Returns whether it was."""
        was_open, self.is_open = self.is_open, False
        if was_open:
            self.since = now
            self.fallbacks += 1
        return was_open

    def end(self, reason: str) -> None:
        """Note why the stream has ended, or was not opened."""
        self.ends[reason] += 1
        self.why = ENDS[reason]


def reason_of(error: UpstreamError | None, *, was_open: bool) -> str:
    """Return why a stream has ended with an error, or in order (None)."""
    if error is None:
        return CLOSED
    if error.kind in (SILENT, POLLING, THROTTLED):
        return error.kind
    if error.status is None:
        return BROKEN if was_open else UNREACHABLE
    is_passing = error.status in PASSING or (500 <= error.status <= 599 and error.status != NOT_IMPLEMENTED)
    return SERVER if is_passing else NOT_OFFERED
