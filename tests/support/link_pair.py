"""A worker's link to its parent, and the messages that the parent receives from it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.call import StatusCounts
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.sources import Sources
from flagsvc.proxy.configuration import Holder, Preparer
from flagsvc.proxy.configuration.prepare import PreparedDocument
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.proxy.workers.link import LinkedFeed, ParentLink
from flagsvc.testing import FakeClock, RecordingLog

ENVIRONMENTS = [messages.EnvironmentOptions(0, "", {"client_keys": ["a"]})]


class SlowPreparer(Preparer):
    """Prepares every document as a large one: other tasks run meanwhile."""

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        """Prepare a document."""
        await asyncio.sleep(0)
        return await super().__call__(body, previous)


PREPARE = SlowPreparer(Compiler(CompileOptions()))


class RecordingCommands:
    """Records the commands, and calls `on_reload` at each Reload."""

    def __init__(self) -> None:
        self.groups: list[tuple[str, int]] = []
        self.leave_calls = 0
        self.calls: list[object] = []
        self.on_reload: Callable[[], object] = list

    async def adopt(self, group: int) -> None:
        """Note it, after a while."""
        await asyncio.sleep(0)  # as listening on a socket does, it lets other tasks run
        self.groups.append(("adopt", group))

    def release(self, group: int) -> None:
        """Note it."""
        self.groups.append(("release", group))

    def reload(self, environments: list[messages.EnvironmentOptions]) -> None:
        """Note it."""
        self.calls.append(environments)
        self.on_reload()

    def drain(self) -> None:
        """Note it."""
        self.calls.append("drain")

    def leave(self) -> None:
        """Note it."""
        self.leave_calls += 1


class Pair:
    """A link, and the messages that the parent receives from it."""

    def __init__(self) -> None:
        self.clock, self.log, self.commands = FakeClock(), RecordingLog(), RecordingCommands()
        self.holder = Holder()
        self.counters = UsageCounters(lambda: {"a": ("v",)}, self.clock.now)
        self.tally = StatusCounts("GET", "/proxy")
        self.link = ParentLink(worker=1, log=self.log, clock=self.clock)
        self.link.add_feed(0, LinkedFeed(self.holder, self.counters, PREPARE))
        self.received: list[messages.Message] = []
        self.parent: Channel[messages.WorkerMessage] = Channel(
            messages.decode_worker_message, lambda message, _: self.received.append(message)
        )

    def add(self, number: int) -> LinkedFeed:
        """Add another environment to the link."""
        counters = UsageCounters(lambda: {"a": ("v",)}, self.clock.now)
        made = LinkedFeed(Holder(), counters, PREPARE)
        self.link.add_feed(number, made)
        return made

    def sources(self) -> Sources:
        """Return the sources of the metrics."""
        return Sources(self.holder, self.counters, [self.tally], self.clock, AnswerCache(0))

    def of(self, kind: type[messages.Message]) -> list[Any]:
        """Return the received messages of one type."""
        return [message for message in self.received if isinstance(message, kind)]

    def answers(self) -> float:
        """Return how many requests the parent has counted."""
        samples = [sample for counts in self.of(messages.Counts) for sample in counts.samples]
        return sum(value for key, value in samples if key[0] == "flagsvc_http_requests")  # type: ignore[no-any-return]


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    """Give a link that works, and stop it."""
    made = Pair()
    here, there = socket.socketpair()
    await connect_channel(here, made.parent)
    await connect_channel(there, made.link.channel)
    made.link.start(made.sources(), made.commands)
    try:
        yield made
    finally:
        await made.link.stop()
        made.parent.close()
