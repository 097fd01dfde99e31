"""The shared state of one server's connections: the ticking clock, the memory budget, the limits. Compiled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Final

from mypy_extensions import i64, u8

from flagsvc.core.log import Logger
from flagsvc.http.counts import Traffic
from flagsvc.http.messages import Response
from flagsvc.http.server.states import BODY, IDLE
from flagsvc.http.server.writer import ResponseWriter, ServerState, Stream

TLS_WARNING_S: Final = 60.0
"""Seconds between two log lines about callers that speak TLS to a port of plain HTTP."""
SMALL: Final = 2048
"""Bytes that are not charged, because a connection itself takes more."""


class SharedState:
    """The shared part of one server's connections.

    One timer ticks for all of them, as long as there are any. A connection notes the tick `now` at which something began, and
    compares when `check_time` is called; `times` has the limits.

    `streams` counts the answers in parts. `answered` counts the requests that were answered; `reported` of them are known to the
    server. `draining` tells that every answer is the last of its connection. `handshakes` are the connections in their TLS
    handshake, `rejected` the connections for which there is no room. `tls_callers` counts the callers that spoke TLS to plain HTTP
    since the last warning; the next one comes after `next_tls_warning`, a time of the event loop.
    """

    def __init__(self, server: ServerState, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop, traffic: Traffic) -> None:
        self.server: Final = server
        self.limits: Final = limits
        self.loop: Final = loop
        self.traffic: Final = traffic
        self.times: Final = Timeouts(limits)
        self.writer: Final = ResponseWriter(server, loop)
        self.budget: Final = MemoryBudget(limits.memory)
        self.connections: set[Stream] = set()
        self.handshakes: set[Stream] = set()
        self.rejected: set[Stream] = set()
        self.ticking: bool = False
        self.tick_due: float = 0.0
        self.draining: bool = False
        self.now: i64 = 0
        self.answered: i64 = 0
        self.reported: i64 = 0
        self.max_connections: i64 = limits.connections
        self.max_rejected: i64 = limits.rejected
        self.streams: i64 = 0
        self.max_streams: i64 = limits.streams
        self.tls_callers: i64 = 0
        self.next_tls_warning: float = 0.0

    def held(self) -> i64:
        """Return the number of connections that count, including those in their handshake. Answers in parts have a limit of their
        own, so their connections do not count, but for those beyond what the system has files for."""
        return len(self.connections) + len(self.handshakes) - min(self.streams, self.max_streams)

    def begin_handshake(self, connection: Stream) -> bool:
        """Count a connection from the start of its TLS handshake.

        Returns False, without counting it, if it could not even be rejected.
        """
        if self.held() >= self.max_connections + self.max_rejected:
            return False
        self.handshakes.add(connection)
        return True

    def end_handshake(self, connection: Stream) -> None:
        """Stop counting a connection as one in its handshake."""
        self.handshakes.discard(connection)

    def add(self, connection: Stream) -> bool:
        """Add a connection. Returns whether there is room for it. Rejected connections take no room."""
        self.server.connections.add(connection)
        self.connections.add(connection)
        self.handshakes.discard(connection)
        if not self.ticking:
            self.ticking = True
            self.plan_tick()
        return self.held() - len(self.rejected) <= self.max_connections

    def reject(self, connection: Stream) -> bool:
        """Count a connection as rejected. Returns whether it gets an answer and may wait for its end."""
        self.rejected.add(connection)
        return len(self.rejected) <= self.max_rejected

    def remove(self, connection: Stream) -> None:
        self.server.connections.discard(connection)
        self.connections.discard(connection)
        self.rejected.discard(connection)

    def drain(self) -> None:
        """Make every answer from now on the last of its connection, and end those that come in parts."""
        self.draining = True
        for connection in list(self.connections):
            if connection.parts is not None:
                connection.parts.drain()

    def plan_tick(self) -> None:
        self.tick_due = monotonic() + self.limits.tick_s
        self.loop.call_later(self.limits.tick_s, self.tick)

    def tick(self) -> None:
        """Advance the clock, note how late the event loop calls this, and have every connection check its time."""
        self.traffic.lag.add(max(0.0, monotonic() - self.tick_due))
        self.now += 1
        for connection in list(self.connections):
            connection.check_time(self.now)
        self.server.total_requests += self.answered - self.reported
        self.reported = self.answered
        if self.connections:
            self.plan_tick()
        else:
            self.ticking = False

    def count_tls_caller(self, log: Logger) -> None:
        """Count a caller that speaks TLS on a port of plain HTTP. Logs a warning now and then."""
        self.tls_callers += 1
        moment = self.loop.time()
        if moment >= self.next_tls_warning:
            told = "callers speak TLS to a port of plain HTTP; call http:// here, or give tlsCert to serve https://"
            log.warn(told, connections=int(self.tls_callers))
            self.tls_callers = 0
            self.next_tls_warning = moment + TLS_WARNING_S

    def start(self, answer: Awaitable[Response]) -> asyncio.Future[Response]:
        """Return the task that makes an answer. The server waits for it when it ends."""
        task = asyncio.ensure_future(answer, loop=self.loop)
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)
        return task


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


def heaviest_first(connection: Stream) -> int:
    """Return the sort key: most bytes first."""
    return -int(connection.charged)


class MemoryBudget:
    """The bytes of one server's connections: `limit` for all, half of it for one network.

    A connection is charged for what it holds: an incomplete head or body, requests that wait for their turn or their answer, an
    answer that the caller has not read. If the sum is too large, the connections that hold most are closed.
    """

    def __init__(self, limit: int) -> None:
        self.limit: Final[i64] = limit
        self.total: i64 = 0
        self.networks: dict[bytes, int] = {}
        self.holders: set[Stream] = set()

    def charge(self, connection: Stream, size: i64) -> None:
        """Set how many bytes a connection holds. If that is too much for all, or for its network, some connections are closed."""
        if size < SMALL:
            size = 0
        grown = size - connection.charged
        if grown == 0:
            return
        connection.charged = size
        self.total += grown
        if size == 0:
            self.holders.discard(connection)
        else:
            self.holders.add(connection)
        network = connection.network
        held: i64 = 0
        if network:
            held = self.networks.get(network, 0) + grown
            if held:
                self.networks[network] = held
            else:
                del self.networks[network]
        if grown > 0:
            if held > self.limit // 2:
                self.relieve([one for one in self.holders if one.network == network], held, self.limit // 2)
            elif self.total > self.limit:
                self.relieve(list(self.holders), self.total, self.limit)

    def relieve(self, holders: list[Stream], held: i64, limit: i64) -> None:
        """Close the connections that hold most, until three quarters of a limit are used.

        So the next bytes do not start another search.
        """
        holders.sort(key=heaviest_first)
        for connection in holders:
            if held <= limit // 4 * 3:
                return
            held -= connection.charged
            connection.free_memory()


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of every connection of one server. Times are exact to within two of `tick_s`.

    `keep_alive_s`: between an answer and the next request. `head_s`: from the connection or the first byte of a request until
    its head is complete. `body_s`: from then until its body is complete. `write_s`: while the caller reads no byte of the
    answer. `linger_s`: for the rest of a request after an answer that closes the connection. `shutdown_s`: for a started
    request, and for an answer that is not read, when the server ends. `half_closed_s`: for making an answer for a caller that
    sends no more and may have gone.

    `discarded`: bytes of a body that are discarded before the connection is closed. `lingered`: bytes that are discarded after an
    answer that closes. `connections`: the most connections, without `streams` answers in parts. A further one gets a 503 and is
    closed; it is only closed if `rejected` others are waiting for theirs. `memory`: bytes of unfinished requests and answers of all
    connections together.
    """

    keep_alive_s: float = 75.0
    head_s: float = 20.0
    body_s: float = 60.0
    write_s: float = 60.0
    linger_s: float = 5.0
    shutdown_s: float = 5.0
    half_closed_s: float = 1.0
    discarded: int = 10_000_000
    lingered: int = 1_000_000
    connections: int = 10_000
    streams: int = 10_000
    memory: int = 128 * 1024 * 1024
    rejected: int = 64
    tick_s: float = 1.0
