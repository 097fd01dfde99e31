"""The worker's end: serves the configuration that the parent sends, and sends up what is counted.

It looks at the counters every few milliseconds rather than being told by them: counting is on the way of every request.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol

from flagsvc.core.log import Logger, locate_error
from flagsvc.http.messages import Refused
from flagsvc.proxy.api.samples import Readings, Sources, readings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.ports import S
from flagsvc.proxy.configuration.prepare import PreparedDocument as Ready
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.channel import Channel
from flagsvc.proxy.workers.sums import MetricChanges, NewReadings

OFTEN_S = 0.05
"""Seconds between two looks at the counters: a worker that is killed takes with it what it has counted since, but for reports."""
SELDOM = 20
"""After so many looks everything is sent, also what may be lost."""
TEXT_S = 5.0
"""Seconds that a scrape waits for the parent."""

Order = say.Adopt | say.Release | say.Reload | say.Drain
"""What the post does."""
Prepare = Callable[[bytes, S | None], Awaitable[Ready[S]]]
"""Makes a document ready that can replace what is served."""


class WorkerCommands(Protocol):
    """What of a worker the parent can have done: the sockets of another, its keys, its end."""

    async def adopt(self, group: int) -> None:
        """Also take connections of this group."""

    def release(self, group: int) -> None:
        """Leave the group alone."""

    def reload(self, options: dict[str, Any]) -> None:
        """Go on with the values of these options, by field; where there are none, read again what else can be."""

    def drain(self) -> None:
        """Fail readiness, and have callers go elsewhere."""

    def leave(self) -> None:
        """End in order."""


class ParentLink(Generic[S]):
    """Feeds `holder`, drains `counters` and the metrics of `sources`. `channel` is to be connected before `start`."""

    def __init__(
        self,
        holder: Holder[S],
        counters: UsageCounters,
        prepare: Prepare[S],
        *,
        worker: int,
        log: Logger,
    ) -> None:
        self.channel: Channel[say.Down] = Channel(say.downward, self._take)
        self._holder = holder
        self._counters = counters
        self._prepare = prepare
        self._worker = worker
        self._log = log
        self._sources: Sources | None = None
        self._post: WorkerCommands | None = None
        self._changes = MetricChanges()
        self._ready: dict[int, Ready[S]] = {}
        self._documents: asyncio.Queue[tuple[say.Prepare | say.Switch, bytes]] = asyncio.Queue()
        self._orders: asyncio.Queue[Order] = asyncio.Queue()
        self._texts: dict[int, asyncio.Future[bytes]] = {}
        self._asked = 0
        self._hurrying = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, sources: Sources, post: WorkerCommands) -> None:
        """Take documents, and send what is counted from now on."""
        self._sources, self._post = sources, post
        self._counters.on_report = self._hurry
        for work in (self._follow(), self._attend(post), self._send_often(sources), self._end_with_parent()):
            self._spawn(work)

    def serving(self) -> None:
        """Say that connections are taken."""
        self.channel.send(say.Serving())

    async def text(self) -> bytes:
        """Return the metrics of all processes; raises Refused (503) where the parent does not give them."""
        self._asked += 1
        number = self._asked
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._texts[number] = waiting
        self._send_counts()
        self.channel.send(say.Ask(number))
        try:
            async with asyncio.timeout(TEXT_S):
                return await waiting
        except TimeoutError:
            raise Refused(503, "the metrics of the other processes cannot be had", []) from None
        finally:
            del self._texts[number]

    async def stop(self) -> None:
        """Send what was counted, and end when it is sent."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._send_counts()
        await self.channel.flush()

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        """Leave where a task failed: a worker that cannot do its work is replaced by one that can."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._log.error("a worker gives up", worker=self._worker, error=locate_error(error))
            self.channel.close()
            self._leave()

    def _take(self, message: say.Down, body: bytes) -> None:
        """Do what the parent says: documents one behind the other, and so what the post does, everything else at once."""
        if isinstance(message, say.Prepare | say.Switch):
            self._documents.put_nowait((message, body))
        elif isinstance(message, say.Checked):
            self._holder.checked = message.moment
        elif isinstance(message, say.Report):
            self._send_counts()
            self.channel.send(say.Reported(message.number))
        elif isinstance(message, say.Ping):
            self.channel.send(say.Pong())
        elif isinstance(message, say.Text):
            self._give(message.number, body)
        elif isinstance(message, say.Leave):
            self._leave()
        elif isinstance(message, Order):
            self._orders.put_nowait(message)

    def _give(self, number: int, text: bytes) -> None:
        waiting = self._texts.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(text)

    def _leave(self) -> None:
        if self._post is not None:
            self._post.leave()

    async def _follow(self) -> None:
        """Prepare and switch, in the order in which the parent says so."""
        while True:
            message, body = await self._documents.get()
            if isinstance(message, say.Prepare):
                await self._make_ready(message.number, body)
            else:
                self._switch(message.number)

    async def _attend(self, post: WorkerCommands) -> None:
        """Have the post do what the parent says, in that order."""
        while True:
            message = await self._orders.get()
            if isinstance(message, say.Adopt):
                await post.adopt(message.group)
            elif isinstance(message, say.Release):
                post.release(message.group)
            elif isinstance(message, say.Drain):
                post.drain()
            else:
                post.reload(message.options)
                self.channel.send(say.Reloaded(message.number))

    async def _make_ready(self, number: int, body: bytes) -> None:
        ready = self._ready[number] = await self._prepare(body, self._holder.current)
        for old in sorted(self._ready)[: -say.KEPT]:
            del self._ready[old]
        self.channel.send(say.Prepared(number, ready.snapshot.revision))

    def _switch(self, number: int) -> None:
        ready = self._ready.pop(number)
        self._holder.replace(ready.snapshot, ready.document, len(ready.problems))
        self.channel.send(say.Switched(number))
        self._log.debug("configuration switched", worker=self._worker, revision=ready.snapshot.revision)

    async def _send_often(self, sources: Sources) -> None:
        fresh = NewReadings(sources.tallies)
        for look in itertools.count(1):
            await asyncio.sleep(OFTEN_S)
            if look % SELDOM:
                self._send(fresh.take())
            else:
                self._send_counts()

    def _hurry(self) -> None:
        """Send what SDKs have reported before the next turn of the loop, for their posts are answered in this one."""
        if not self._hurrying:
            self._hurrying = True
            asyncio.get_running_loop().call_soon(self._send_reports)

    def _send_reports(self) -> None:
        self._hurrying = False
        self._send({})

    def _send_counts(self) -> None:
        """Send everything that was counted since the last time."""
        self._send({} if self._sources is None else readings(self._sources))

    def _send(self, found: Readings) -> None:
        """Send usage, and what is new in these readings, if there is anything."""
        counts = say.counts(self._counters.drain(), self._changes.take(found))
        if counts is not None:
            self.channel.send(counts)

    async def _end_with_parent(self) -> None:
        """Leave when the parent is gone."""
        await self.channel.closed.wait()
        self._log.warn("the parent process is gone, this worker ends", worker=self._worker)
        self._leave()
