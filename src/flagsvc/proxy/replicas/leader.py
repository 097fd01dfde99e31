"""What a replica knows of the leader that it follows."""

from __future__ import annotations

from flagsvc.core.clock import Clock
from flagsvc.proxy.replicas.heartbeat import Heartbeat


class LeaderView:
    """The last heartbeat of another replica, and when it was told: ages travel, and are counted on from there.

    `heard` is the moment from which silence counts.
    """

    def __init__(self, clock: Clock) -> None:
        self.heartbeat = Heartbeat("")
        self.heard = 0.0
        self._clock = clock
        self._told = 0.0
        self._as_of: float | None = None

    def silence(self) -> float:
        """Return for how many seconds the leader was not heard."""
        return self._clock.monotonic() - self.heard

    def told_ago(self, heartbeat: Heartbeat | None, now: float, ago: float) -> float:
        """Return how many seconds ago a heartbeat in the lease was told; `ago` is what the time says that the lease has left.

        One that is known is no fresher by that: it was looked for at the moment `now`.
        """
        return max(ago, now - self._told) if heartbeat == self.heartbeat else ago

    def take(self, heartbeat: Heartbeat, ago: float) -> bool:
        """Take a heartbeat that was told so many seconds ago; return whether the leader has asked the upstream since the last."""
        before = self.heartbeat
        self.heartbeat = heartbeat
        self.heard = self._told = self._clock.monotonic() - ago
        return (heartbeat.leader, heartbeat.number) != (before.leader, before.number)

    def take_age(self) -> None:
        """Take how fresh the leader's configuration is: not before it is here."""
        if self.heartbeat.age_s is not None:
            self._as_of = self._told - self.heartbeat.age_s

    def age(self) -> float | None:
        """Return how many seconds ago the leader's last check of the upstream was that went well, None for never."""
        return None if self._as_of is None else max(0.0, self._clock.monotonic() - self._as_of)
