"""When a replica does what: heartbeats, looks at the lease, pauses, and polls after a random time.

All times are those of the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.core.backoff import delay_after_failure
from flagsvc.core.clock import Clock

HEARTBEATS = 5
"""Heartbeats in the time of a lease."""
LOOK_AFTER_HEARTBEATS = 1.6
"""A replica looks at the lease after this many heartbeat intervals without a heartbeat."""
POLL_ALONE_AFTER_LEASES = 3
"""A replica that has heard no leader for the time of this many leases polls the upstream itself."""
DEAF_HEARTBEATS = 4.0
"""A replica that has received nothing for this many heartbeat intervals, while the lease is renewed, subscribes again."""
RELEASED_S = 0.05
"""After a lease is given back, each other replica looks at it at a random time within this many seconds."""
PAUSE_LEASES = 3
"""A leader that handed over does not take the lease for the time of this many leases, unless no other replica has it."""


class Schedule:
    """The times of one replica. `draw` returns random numbers in [0, 1).

    `due` is the time of the next heartbeat, or of the next look at the lease. `received` is the time of the last message. A
    replica does not seek the lease before `paused_until`, and does not poll the upstream before `asks_at`.
    """

    def __init__(self, clock: Clock, draw: Callable[[], float], lease_s: float, spread_s: float) -> None:
        self.clock = clock
        self.lease_s = lease_s
        self.heartbeat_s = lease_s / HEARTBEATS
        self.due = self.received = self.paused_until = self.asks_at = 0.0
        self._draw = draw
        self._spread_s = spread_s

    def now(self) -> float:
        """Return the time."""
        return self.clock.monotonic()

    def left(self) -> float:
        """Return the seconds until something is due."""
        return max(0.0, self.due - self.now())

    def next_heartbeat(self) -> None:
        """Set the time of the next heartbeat. It varies, so that replicas that start together do not stay together."""
        self.due = self.now() + self.heartbeat_s * (0.9 + self._draw() / 5)

    def silent(self, silence_s: float) -> bool:
        """Return whether a leader that was silent for this many seconds may have ended."""
        return silence_s >= LOOK_AFTER_HEARTBEATS * self.heartbeat_s

    def gone(self, silence_s: float) -> bool:
        """Return whether a leader that was silent for this many seconds is followed no longer."""
        return silence_s >= POLL_ALONE_AFTER_LEASES * self.lease_s

    def deaf(self, now: float) -> bool:
        """Return whether no message has come for so long that the subscription may be broken."""
        return now - self.received > DEAF_HEARTBEATS * self.heartbeat_s

    def rest(self) -> None:
        """Leave the lease to other replicas for a while."""
        self.paused_until = self.now() + PAUSE_LEASES * self.lease_s

    def is_paused(self, silence_s: float) -> bool:
        """Return whether this replica leaves the lease to others, of which the last was heard this many seconds ago."""
        return self.now() < self.paused_until and silence_s < 2 * self.lease_s

    def spread(self) -> None:
        """Set a random time for this replica's own poll."""
        self.asks_at = self.now() + self._draw() * self._spread_s

    async def pause_after_release(self) -> None:
        """Wait for a random time before this replica looks at a lease that became free."""
        await self.clock.sleep(self._draw() * RELEASED_S)

    async def pause_after_outage(self, outages: int) -> None:
        """Wait before the next attempt to reach the server: longer after each failure, up to the time of a lease."""
        most = HEARTBEATS * self.heartbeat_s
        await self.clock.sleep(delay_after_failure(outages, self._draw(), self.heartbeat_s, ceiling=most))
