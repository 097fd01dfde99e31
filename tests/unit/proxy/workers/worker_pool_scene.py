"""A worker pool without processes: each worker reads and writes the other end of a socket pair, in the same loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from flagsvc.proxy.tokens import Admission, UnavailableError
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.proxy.workers.distribution import DocumentDistribution
from flagsvc.proxy.workers.pool import PoolTimeouts, WorkerPool
from flagsvc.testing import FakeClock, RecordingLog, turns
from support.aio import until

PATIENT = PoolTimeouts(late=10, stuck=10, report=10, leave=10)
"""Long timeouts, for workers that answer: each wait ends when its condition holds, also on a slow machine."""
SHORT = PoolTimeouts(late=0.2, stuck=0.2, report=0.2, leave=10)
"""Short timeouts, for tests with a worker that does not answer."""


class FakeWorker(subprocess.Popen[bytes]):
    """A worker without a process. `received` are its messages; it does not answer messages of the types in `ignores`."""

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
            self.channel.send(messages.Prepared(message.number, "revision", message.environment))
        elif isinstance(message, messages.Switch):
            self.channel.send(messages.Switched(message.number, message.environment))
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
        self.killed = True
        self.end(-9)

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("worker", timeout or 0)
        return self._status

    def received_of(self, kind: type[messages.Message]) -> list[Any]:
        return [message for message in self.received if isinstance(message, kind)]


def served(number: int = 0, name: str = "", port: int = 1, **options: object) -> messages.EnvironmentOptions:
    """Return an environment with options as the workers receive them."""
    return messages.EnvironmentOptions(number, name, {"port": port, **options})


class PoolScene:
    """The pool, all workers that were started, clock and log. `refusals` are raised instead of starting the next worker.

    Each of `names` is an environment with a number. `counters` and `distribution` belong to the first environment.
    A process with several has options, and `has_started` tells that each was tried once.

    `opened` is what tokens open, and `asked` has the tokens, the network and the seconds of each question. `valid` are the digests
    of tokens that are known to be valid.
    """

    def __init__(
        self,
        size: int,
        groups: int | None = None,
        timeouts: PoolTimeouts = PATIENT,
        timeout_s: float = 0,
        names: Sequence[str] = ("",),
    ) -> None:
        self.made: list[FakeWorker] = []
        self.ignores: set[type[messages.Message]] = set()
        self.refusals: list[OSError] = []
        self.opened: dict[str, Admission | UnavailableError] = {}
        self.asked: list[tuple[list[str], bytes, float]] = []
        self.valid: list[str] = []
        self.has_started = False
        self.clock = FakeClock()
        self.log = RecordingLog()
        self.worker_pool = WorkerPool(
            size,
            self.spawn,
            sockets=[[number] for number in range(size if groups is None else groups)],
            render_metrics=lambda is_open: b"the metrics",
            look_up=self.look_up,
            list_valid_tokens=lambda: self.valid,
            options={"port": 3000},
            has_started=lambda: self.has_started,
            clock=self.clock,
            log=self.log,
            draw=lambda: 0.5,
            timeouts=timeouts,
            timeout_s=timeout_s,
        )
        self.every_counters: list[UsageCounters] = []
        self.distributions: list[DocumentDistribution] = []
        for _ in names:
            self.add()
        self.worker_pool.use_environments([served(number, name) for number, name in enumerate(names)])

    async def look_up(self, tokens: Sequence[str], network: bytes, seconds: float) -> dict[str, Admission]:
        """Return what tokens open, after a while."""
        self.asked.append((list(tokens), network, seconds))
        await turns()
        found = {}
        for token in tokens:
            opened = self.opened.get(token)
            if isinstance(opened, UnavailableError):
                raise opened
            if opened is not None:
                found[token] = opened
        return found

    @property
    def counters(self) -> UsageCounters:
        """The counters of the first environment."""
        return self.every_counters[0]

    @property
    def distribution(self) -> DocumentDistribution:
        """The documents of the first environment."""
        return self.distributions[0]

    def add(self) -> int:
        """Add an environment to the pool; return its number. No worker serves it yet."""
        number = len(self.distributions)
        self.every_counters.append(UsageCounters(dict, self.clock.now))
        self.distributions.append(self.worker_pool.add_feed(number, self.every_counters[number], self.log))
        return number

    async def reload(self, *environments: messages.EnvironmentOptions) -> None:
        """Have the workers serve these environments, and wait until they do."""
        self.worker_pool.use_environments(environments)
        await self.worker_pool.wait_reloaded()

    def spawn(self, end: socket.socket) -> FakeWorker:
        if self.refusals:
            raise self.refusals.pop(0)
        self.made.append(FakeWorker(end, set(self.ignores)))
        return self.made[-1]

    async def until(self, condition: Any) -> None:
        await until(condition)


@asynccontextmanager
async def pool_scene(size: int = 2, **more: Any) -> AsyncIterator[PoolScene]:
    """Yield a pool that has started, and stop it afterwards."""
    made = PoolScene(size, **more)
    made.worker_pool.start()
    await made.worker_pool.wait_started()
    try:
        yield made
    finally:
        await made.worker_pool.stop()
