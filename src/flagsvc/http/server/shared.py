"""The shared state of one server's connections: the ticking clock, the writer of answers, the memory budget. Compiled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

from mypy_extensions import i64

from flagsvc.core.log import Logger
from flagsvc.http.messages import Response
from flagsvc.http.server.connection_limits import ConnectionLimits
from flagsvc.http.server.memory_budget import MemoryBudget
from flagsvc.http.server.stream import Stream
from flagsvc.http.server.timeouts import Timeouts
from flagsvc.http.server.writer import ResponseWriter

TLS_WARNING_S: Final = 60.0
"""Seconds between two log lines about callers that speak TLS to a port of plain HTTP."""


class ServerState(Protocol):
    """What uvicorn's server keeps of its connections and reads from them."""

    connections: set[object]
    tasks: set[asyncio.Task[object]]
    total_requests: int
    default_headers: list[tuple[bytes, bytes]]


class SharedState:
    """The shared part of one server's connections.

    One timer ticks for all of them, as long as there are any. A connection notes the tick `now` at which something began, and
    compares when `check_time` is called; `times` has the limits.

    `answered` counts the requests that were answered, `reported` those of them that the server knows of. `draining` tells that
    every answer is the last of its connection. `handshakes` are the connections in their TLS
    handshake, `rejected` those that are there although there is no room for them. `tls_callers` counts the callers that spoke
    TLS to plain HTTP since the last warning; the next one comes after `next_tls_warning`, a time of the event loop.
    """

    def __init__(self, server: ServerState, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop) -> None:
        self.server: Final = server
        self.limits: Final = limits
        self.loop: Final = loop
        self.times: Final = Timeouts(limits)
        self.writer: Final = ResponseWriter(server, loop)
        self.budget: Final = MemoryBudget(limits.memory)
        self.connections: set[Stream] = set()
        self.handshakes: set[Stream] = set()
        self.rejected: set[Stream] = set()
        self.ticking: bool = False
        self.draining: bool = False
        self.now: i64 = 0
        self.answered: i64 = 0
        self.reported: i64 = 0
        self.max_connections: i64 = limits.connections
        self.max_rejected: i64 = limits.rejected
        self.tls_callers: i64 = 0
        self.next_tls_warning: float = 0.0

    def held(self) -> i64:
        """Return the number of connections, including those in their handshake."""
        return len(self.connections) + len(self.handshakes)

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
            self.loop.call_later(self.limits.tick_s, self.tick)
        return self.held() - len(self.rejected) <= self.max_connections

    def reject(self, connection: Stream) -> bool:
        """Count a connection as rejected. Returns whether it gets an answer and may wait for its end."""
        self.rejected.add(connection)
        return len(self.rejected) <= self.max_rejected

    def remove(self, connection: Stream) -> None:
        """Remove a lost connection."""
        self.server.connections.discard(connection)
        self.connections.discard(connection)
        self.rejected.discard(connection)

    def drain(self) -> None:
        """Make every answer from now on the last of its connection, and end those that come in parts."""
        self.draining = True
        for connection in list(self.connections):
            if connection.parts is not None:
                connection.parts.end()

    def tick(self) -> None:
        """Advance the clock, and have every connection check its time."""
        self.now += 1
        for connection in list(self.connections):
            connection.check_time(self.now)
        self.server.total_requests += self.answered - self.reported
        self.reported = self.answered
        if self.connections:
            self.loop.call_later(self.limits.tick_s, self.tick)
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
