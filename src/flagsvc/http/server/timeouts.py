"""The time limits of a connection in its present step, in ticks of the server's clock. Compiled."""

from __future__ import annotations

from math import ceil

from mypy_extensions import i64, u8

from flagsvc.http.server.connection_limits import ConnectionLimits
from flagsvc.http.server.states import BODY, IDLE


class Timeouts:
    """The time limits of one server's connections. While it is `stopping`, a started request has less time."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.tick_s: float = limits.tick_s
        self.stopping: bool = False
        self.keep_alive: i64 = self.ticks(limits.keep_alive_s)
        self.head: i64 = self.ticks(limits.head_s)
        self.body: i64 = self.ticks(limits.body_s)
        self.write: i64 = self.ticks(limits.write_s)
        self.linger: i64 = self.ticks(limits.linger_s)
        self.shutdown: i64 = self.ticks(limits.shutdown_s)
        self.half_closed: i64 = self.ticks(limits.half_closed_s)

    def ticks(self, seconds: float) -> int:
        """Return the number of ticks after which this many seconds have certainly passed."""
        return ceil(seconds / self.tick_s)

    def reading(self, state: u8, idle: i64) -> i64:
        """Return the limit for a request, or the pause before it, by its state and the bytes that arrived without progress."""
        if state == IDLE and idle == 0:
            return self.keep_alive
        if self.stopping:
            return self.shutdown
        return self.body if state == BODY else self.head

    def writing(self) -> i64:
        """Return the time in which a caller must read a byte of the answer."""
        return self.shutdown if self.stopping else self.write
