"""When a replica does what: heartbeats, a look at the lease, a rest from leading, a moment of its own to ask the upstream.

All moments are those of the clock that never runs backwards.
"""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.core.backoff import delay_after_failure
from flagsvc.core.clock import Clock

HEARTBEATS = 5
"""Heartbeats in the time of a lease."""
SILENT_HEARTBEATS = 1.6
"""After so many of them without one the lease is looked at."""
SILENT_LEASES = 3
"""A replica that has heard of no leader for the time of so many asks the upstream itself."""
DEAF_HEARTBEATS = 4.0
"""A replica that has heard nothing for so many, while the lease is renewed, subscribes again."""
RELEASED_S = 0.05
"""When a lease is given back, the others look at it within this many seconds, each at its own moment."""
PAUSE_LEASES = 3
"""A leader that handed over does not take the lease for the time of so many, unless no other replica has it."""


class Schedule:
    """The moments of one replica. `draw` gives random numbers of [0, 1).

    `due` is the moment of the next heartbeat, or of the next look at the lease. `received` is that of the last message. A replica
    does not seek the lease before `paused_until`, and does not ask the upstream before `asks_at`.
    """

    def __init__(self, clock: Clock, draw: Callable[[], float], lease_s: float, spread_s: float) -> None:
        self.clock = clock
        self.lease_s = lease_s
        self.heartbeat_s = lease_s / HEARTBEATS
        self.due = self.received = self.paused_until = self.asks_at = 0.0
        self._draw = draw
        self._spread_s = spread_s

    def now(self) -> float:
        """Return the moment."""
        return self.clock.monotonic()

    def left(self) -> float:
        """Return how many seconds there are until something is due."""
        return max(0.0, self.due - self.now())

    def next_heartbeat(self) -> None:
        """Have the next heartbeat due after about its time: replicas that start together do not stay together."""
        self.due = self.now() + self.heartbeat_s * (0.9 + self._draw() / 5)

    def silent(self, silence_s: float) -> bool:
        """Return whether a leader that was not heard for so many seconds may be gone."""
        return silence_s >= SILENT_HEARTBEATS * self.heartbeat_s

    def gone(self, silence_s: float) -> bool:
        """Return whether a leader that was not heard for so many seconds is not followed any more."""
        return silence_s >= SILENT_LEASES * self.lease_s

    def deaf(self, now: float) -> bool:
        """Return whether, at a moment, no message came for so long that the subscription may be broken."""
        return now - self.received > DEAF_HEARTBEATS * self.heartbeat_s

    def rest(self) -> None:
        """Leave the lease to others for a while."""
        self.paused_until = self.now() + PAUSE_LEASES * self.lease_s

    def is_paused(self, silence_s: float) -> bool:
        """Return whether the lease is left to others, of whom the last was heard so many seconds ago."""
        return self.now() < self.paused_until and silence_s < 2 * self.lease_s

    def spread(self) -> None:
        """Let the upstream be asked at a moment of this replica's own."""
        self.asks_at = self.now() + self._draw() * self._spread_s

    async def pause_after_release(self) -> None:
        """Wait for a moment of this replica's own before the lease that is free is looked at."""
        await self.clock.sleep(self._draw() * RELEASED_S)

    async def pause_after_outage(self, outages: int) -> None:
        """Wait before the server is asked again, the longer the more often it was not there, up to the time of a lease."""
        most = HEARTBEATS * self.heartbeat_s
        await self.clock.sleep(delay_after_failure(outages, self._draw(), self.heartbeat_s, ceiling=most))
