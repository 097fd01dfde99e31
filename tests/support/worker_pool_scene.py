"""A worker pool without processes: each worker is the other end of its socket pair, in the same loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.proxy.workers.pool import PoolTimeouts, WorkerPool
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import until

PATIENT = PoolTimeouts(late=10, stuck=10, report=10, leave=10)
"""Long timeouts, for workers that answer: each wait ends when its condition holds, also on a slow machine."""
SHORT = PoolTimeouts(late=0.2, stuck=0.2, report=0.2, leave=10)
"""Short timeouts, for tests with a worker that does not answer."""


class FakeWorker:
    """A worker. `received` are its messages; it does not answer messages of the types in `ignores`."""

    numbers = itertools.count(1000)

    def __init__(self, end: socket.socket, deaf: set[type[messages.Message]]) -> None:
        self.pid = next(self.numbers)
        self.ignores = deaf
        self.received: list[messages.Message] = []
        self.bodies: list[bytes] = []
        self.killed = False
        self._status = 0
        self._ended = threading.Event()
        self.channel: Channel[messages.ParentMessage] = Channel(messages.decode_parent_message, self._take)
        self._task = asyncio.ensure_future(connect_channel(end.dup(), self.channel))

    def _take(self, message: messages.ParentMessage, body: bytes) -> None:
        self.received.append(message)
        if type(message) in self.ignores:
            return
        if isinstance(message, messages.Welcome):
            self.channel.send(messages.Serving())
        elif isinstance(message, messages.Prepare):
            self.bodies.append(body)
            self.channel.send(messages.Prepared(message.number, "revision"))
        elif isinstance(message, messages.Switch):
            self.channel.send(messages.Switched(message.number))
        elif isinstance(message, messages.CountsRequest):
            self.channel.send(messages.CountsSent(message.number))
        elif isinstance(message, messages.Reload):
            self.channel.send(messages.Reloaded(message.number))
        elif isinstance(message, messages.Ping):
            self.channel.send(messages.Pong())
        elif isinstance(message, messages.Leave):
            self.end(0)

    def end(self, status: int) -> None:
        """End as a process does, by closing its end of the socket pair."""
        self._status = status
        self._ended.set()
        self.channel.close()

    def kill(self) -> None:
        """End at once."""
        self.killed = True
        self.end(-9)

    def wait(self, timeout: float | None = None) -> int:
        """Return the status once it has ended."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("worker", timeout or 0)
        return self._status

    def received_of(self, kind: type[messages.Message]) -> list[Any]:
        """Return the received messages of one type."""
        return [message for message in self.received if isinstance(message, kind)]


class PoolScene:
    """The pool, all workers that were started, clock and log. `refusals` are raised instead of starting the next worker."""

    def __init__(
        self, size: int, groups: int | None = None, timeouts: PoolTimeouts = PATIENT, timeout_s: float = 0
    ) -> None:
        self.made: list[FakeWorker] = []
        self.ignores: set[type[messages.Message]] = set()
        self.refusals: list[OSError] = []
        self.clock = FakeClock()
        self.log = RecordingLog()
        self.counters = UsageCounters(dict, self.clock.now)
        self.worker_pool = WorkerPool(
            size,
            self.spawn,
            options={"port": 1},
            sockets=[[number] for number in range(size if groups is None else groups)],
            counters=self.counters,
            render_metrics=lambda: b"the metrics",
            clock=self.clock,
            log=self.log,
            draw=lambda: 0.5,
            timeouts=timeouts,
            timeout_s=timeout_s,
        )

    def spawn(self, end: socket.socket) -> FakeWorker:
        """Start a worker."""
        if self.refusals:
            raise self.refusals.pop(0)
        self.made.append(FakeWorker(end, set(self.ignores)))
        return self.made[-1]

    async def until(self, condition: Any) -> None:
        """Wait until a condition holds."""
        await until(condition)


@asynccontextmanager
async def pool_scene(
    size: int = 2, groups: int | None = None, timeouts: PoolTimeouts = PATIENT, timeout_s: float = 0
) -> AsyncIterator[PoolScene]:
    """Yield a pool that has started, and stop it afterwards."""
    made = PoolScene(size, groups, timeouts, timeout_s)
    made.worker_pool.start()
    await made.worker_pool.wait_started()
    try:
        yield made
    finally:
        await made.worker_pool.stop()
