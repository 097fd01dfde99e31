"""A crew whose workers are no processes: each is the other end of its socket pair, in the same loop, and does as it is told."""

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
from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.channel import Channel, connected
from flagsvc.proxy.workers.pool import RolloutTimeouts, WorkerPool
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import until

PATIENT = RolloutTimeouts(late=10, stuck=10, report=10, leave=10)
"""Where all do as they are told each wait ends with what it waits for, not with its time, also on a slow machine."""
SHORT = RolloutTimeouts(late=0.2, stuck=0.2, report=0.2, leave=10)
"""Where somebody is deaf on purpose, and is waited for in vain."""


class FakeWorker:
    """What sits at the other end. `heard` is what it was told; what is named in `deaf` it does not do."""

    numbers = itertools.count(1000)

    def __init__(self, end: socket.socket, deaf: set[type[say.Message]]) -> None:
        self.pid = next(self.numbers)
        self.deaf = deaf
        self.heard: list[say.Message] = []
        self.bodies: list[bytes] = []
        self.killed = False
        self._status = 0
        self._ended = threading.Event()
        self.channel: Channel[say.Down] = Channel(say.downward, self._take)
        self._task = asyncio.ensure_future(connected(end.dup(), self.channel))

    def _take(self, message: say.Down, body: bytes) -> None:
        self.heard.append(message)
        if type(message) in self.deaf:
            return
        if isinstance(message, say.Welcome):
            self.channel.send(say.Serving())
        elif isinstance(message, say.Prepare):
            self.bodies.append(body)
            self.channel.send(say.Prepared(message.number, "revision"))
        elif isinstance(message, say.Switch):
            self.channel.send(say.Switched(message.number))
        elif isinstance(message, say.Report):
            self.channel.send(say.Reported(message.number))
        elif isinstance(message, say.Reload):
            self.channel.send(say.Reloaded(message.number))
        elif isinstance(message, say.Ping):
            self.channel.send(say.Pong())
        elif isinstance(message, say.Leave):
            self.end(0)

    def end(self, status: int) -> None:
        """End as a process does: its end of the socket pair is closed."""
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

    def told(self, kind: type[say.Message]) -> list[Any]:
        """Return what it was told of one kind."""
        return [message for message in self.heard if isinstance(message, kind)]


class Hall:
    """The crew, everybody who ever was in it, and what is around. `refusals` are raised instead of starting the next."""

    def __init__(
        self, size: int, groups: int | None = None, patience: RolloutTimeouts = PATIENT, timeout_s: float = 0
    ) -> None:
        self.made: list[FakeWorker] = []
        self.deaf: set[type[say.Message]] = set()
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
            text=lambda: b"the metrics",
            clock=self.clock,
            log=self.log,
            draw=lambda: 0.5,
            patience=patience,
            timeout_s=timeout_s,
        )

    def spawn(self, end: socket.socket) -> FakeWorker:
        """Start one."""
        if self.refusals:
            raise self.refusals.pop(0)
        self.made.append(FakeWorker(end, set(self.deaf)))
        return self.made[-1]

    async def until(self, condition: Any) -> None:
        """Wait until something is so."""
        await until(condition)


@asynccontextmanager
async def hall(
    size: int = 2, groups: int | None = None, patience: RolloutTimeouts = PATIENT, timeout_s: float = 0
) -> AsyncIterator[Hall]:
    """Give a crew that has started, and stop it."""
    made = Hall(size, groups, patience, timeout_s)
    made.worker_pool.start()
    await made.worker_pool.started()
    try:
        yield made
    finally:
        await made.worker_pool.stop()
