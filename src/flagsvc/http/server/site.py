"""What the connections of one server share: the clock that ticks, the encoder, the budget of bytes. Compiled."""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Final, Protocol

from mypy_extensions import i64

from flagsvc.core.log import Logger
from flagsvc.http.server.budget import Budget, Charged
from flagsvc.http.server.encode import Encoder
from flagsvc.http.server.limits import Limits
from flagsvc.http.server.outbox import Outbox

QUIET_S: Final = 60.0
"""Seconds in which the log says once that callers speak TLS to a port of plain HTTP."""


class State(Protocol):
    """What uvicorn's server keeps of its connections, and what it wants to know of them."""

    connections: set[object]
    tasks: set[asyncio.Task[object]]
    total_requests: int
    default_headers: list[tuple[bytes, bytes]]


class Watched(Charged):
    """What is looked at whenever the clock ticks."""

    def sweep(self, now: i64) -> None:
        """Look whether something has taken too long."""


class Site:
    """The shared part of one server's connections.

    One timer ticks for all of them, as long as there are any; a connection notes the tick at which something began, and compares
    when it is swept. `answered` counts the requests that were answered, `ending` tells that every answer is the
    last of its connection, `stopping` that the server ends. `opening` are the connections in their TLS handshake; `turned` counts
    those that there was no room for, as long as they are there. `strangers` counts the callers that spoke TLS since the log said
    so; it says so again at the moment `quiet`.
    """

    def __init__(self, state: State, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self.state: Final = state
        self.limits: Final = limits
        self.loop: Final = loop
        self.encoder: Final = Encoder(state)
        self.outbox: Final = Outbox(loop)
        self.budget: Final = Budget(limits.memory)
        self.watched: set[Watched] = set()
        self.opening: set[Watched] = set()
        self.ticking: bool = False
        self.ending: bool = False
        self.stopping: bool = False
        self.now: i64 = 0
        self.answered: i64 = 0
        self.told: i64 = 0
        self.keep_alive: i64 = self.ticks(limits.keep_alive_s)
        self.header: i64 = self.ticks(limits.header_s)
        self.body: i64 = self.ticks(limits.body_s)
        self.stall: i64 = self.ticks(limits.stall_s)
        self.linger: i64 = self.ticks(limits.linger_s)
        self.leave: i64 = self.ticks(limits.leave_s)
        self.half: i64 = self.ticks(limits.half_s)
        self.most: i64 = limits.connections
        self.turned: i64 = 0
        self.strangers: i64 = 0
        self.quiet: float = 0.0

    def ticks(self, seconds: float) -> int:
        """Return how many ticks it takes until so many seconds have passed for sure."""
        return ceil(seconds / self.limits.tick_s)

    def open(self, each: Watched) -> bool:
        """Count a connection from before its handshake on; return False, and do not, where there is no room to turn it away."""
        held: i64 = len(self.watched) + len(self.opening)
        if held >= self.most + self.limits.turned:
            return False
        self.opening.add(each)
        return True

    def enter(self, each: Watched) -> bool:
        """Watch a connection from now on; return whether there is room for it, those not counted that were turned away."""
        self.state.connections.add(each)
        self.watched.add(each)
        self.opening.discard(each)
        if not self.ticking:
            self.ticking = True
            self.loop.call_later(self.limits.tick_s, self.tick)
        held: i64 = len(self.watched) + len(self.opening)
        return held - self.turned <= self.most

    def patient(self) -> bool:
        """Return whether another connection that is turned away may wait for its end."""
        return self.turned <= self.limits.turned

    def leave_out(self, each: Watched) -> None:
        """Watch a connection no longer: it is gone."""
        self.state.connections.discard(each)
        self.watched.discard(each)

    def tick(self) -> None:
        """Let the time go on, and look at every connection."""
        self.now += 1
        for each in list(self.watched):
            each.sweep(self.now)
        fresh = self.answered - self.told
        self.told = self.answered
        self.state.total_requests += fresh
        if self.watched:
            self.loop.call_later(self.limits.tick_s, self.tick)
        else:
            self.ticking = False

    def meet_tls(self, log: Logger) -> None:
        """Count a caller that speaks TLS where plain HTTP is spoken; say so in the log, once in a while."""
        self.strangers += 1
        moment = self.loop.time()
        if moment >= self.quiet:
            told = "callers speak TLS to a port of plain HTTP; call http:// here, or give tlsCert to serve https://"
            log.warn(told, connections=int(self.strangers))
            self.strangers = 0
            self.quiet = moment + QUIET_S

    def attend(self, task: asyncio.Task[object]) -> None:
        """Have the server wait for a task when it ends."""
        self.state.tasks.add(task)
        task.add_done_callback(self.state.tasks.discard)
