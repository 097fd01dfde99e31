"""What a follower knows of its leader."""

from __future__ import annotations

from flagsvc.core.clock import Clock
from flagsvc.proxy.replicas.heartbeat import Heartbeat


class LeaderView:
    """The last heartbeat of the leader, and when it was published. Ages in it count on from that time.

    `heard` is the time from which the leader counts as silent.
    """

    def __init__(self, clock: Clock) -> None:
        self.heartbeat = Heartbeat("")
        self.heard = 0.0
        self._clock = clock
        self._told = 0.0
        self._as_of: float | None = None

    def silence(self) -> float:
        """Return for how many seconds the leader has been silent."""
        return self._clock.monotonic() - self.heard

    def told_ago(self, heartbeat: Heartbeat | None, now: float, ago: float) -> float:
        """Return how many seconds ago a heartbeat in the lease was published; `ago` follows from the remaining time of the lease.

        If the heartbeat was known before the time `now`, it does not become younger.
        """
        return max(ago, now - self._told) if heartbeat == self.heartbeat else ago

    def take(self, heartbeat: Heartbeat, ago: float) -> bool:
        """Record a heartbeat that was published this many seconds ago.

        Returns whether the leader has polled the upstream since the last one.
        """
        before = self.heartbeat
        self.heartbeat = heartbeat
        self.heard = self._told = self._clock.monotonic() - ago
        return (heartbeat.leader, heartbeat.number) != (before.leader, before.number)

    def take_age(self) -> None:
        """Record the age of the leader's configuration. Called once this replica has that configuration."""
        if self.heartbeat.age_s is not None:
            self._as_of = self._told - self.heartbeat.age_s

    def age(self) -> float | None:
        """Return how many seconds ago the leader's last successful poll was; None for never."""
        return None if self._as_of is None else max(0.0, self._clock.monotonic() - self._as_of)
