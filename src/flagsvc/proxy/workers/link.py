"""The worker's side: serves the configuration that the parent sends, and sends the counts to the parent.

It checks the counters every few milliseconds. A notification by the counters would cost time in every request.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol

from flagsvc.core.log import Logger, locate_error
from flagsvc.http.messages import HttpError
from flagsvc.http.metrics import Readings
from flagsvc.proxy.api.samples import Sources, readings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.ports import S
from flagsvc.proxy.configuration.prepare import PreparedDocument
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel
from flagsvc.proxy.workers.metric_sums import MetricChanges, NewReadings

SEND_INTERVAL_S = 0.05
"""Seconds between two checks of the counters. A killed worker loses the counts since the last check, except reports of SDKs."""
FULL_SEND_EVERY = 20
"""Each time after this many checks all metrics are sent, also those whose loss does not matter."""
METRICS_TIMEOUT_S = 5.0
"""Seconds that a scrape waits for the parent."""

Command = messages.Adopt | messages.Release | messages.Reload | messages.Drain
"""The messages that `WorkerCommands` carries out in their order."""
PrepareDocument = Callable[[bytes, S | None], Awaitable[PreparedDocument[S]]]
"""Compiles a document that can replace the served configuration."""


class WorkerCommands(Protocol):
    """The commands of the parent to a worker, about sockets, options and shutdown."""

    async def adopt(self, group: int) -> None:
        """Also take connections of this group of sockets."""

    def release(self, group: int) -> None:
        """Take no more connections of this group."""

    def reload(self, options: dict[str, Any]) -> None:
        """Use these values of options, by field. Without options, reload files such as certificates."""

    def drain(self) -> None:
        """Fail readiness, so that callers go elsewhere."""

    def leave(self) -> None:
        """Start an orderly shutdown."""


class ParentLink(Generic[S]):
    """Fills `holder`, and sends the counts of `counters` and `sources`. `channel` must be connected before `start`."""

    def __init__(
        self,
        holder: Holder[S],
        counters: UsageCounters,
        prepare: PrepareDocument[S],
        *,
        worker: int,
        log: Logger,
    ) -> None:
        self.channel: Channel[messages.ParentMessage] = Channel(messages.decode_parent_message, self._handle_message)
        self._holder = holder
        self._counters = counters
        self._prepare = prepare
        self._worker = worker
        self._log = log
        self._sources: Sources | None = None
        self._commands: WorkerCommands | None = None
        self._changes = MetricChanges()
        self._prepared: dict[int, PreparedDocument[S]] = {}
        self._document_queue: asyncio.Queue[tuple[messages.Prepare | messages.Switch, bytes]] = asyncio.Queue()
        self._command_queue: asyncio.Queue[Command] = asyncio.Queue()
        self._metrics_requests: dict[int, asyncio.Future[bytes]] = {}
        self._last_request = 0
        self._is_send_scheduled = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, sources: Sources, commands: WorkerCommands) -> None:
        """Start to handle documents and commands, and to send counts."""
        self._sources, self._commands = sources, commands
        self._counters.on_report = self._schedule_send
        loops = self._handle_documents(), self._run_commands(commands), self._send_regularly(sources)
        for work in (*loops, self._leave_with_parent()):
            self._start_task(work)

    def report_serving(self) -> None:
        """Tell the parent that the worker takes connections."""
        self.channel.send(messages.Serving())

    async def fetch_metrics(self) -> bytes:
        """Return the metrics of all processes. Raises HttpError (503) if the parent does not answer."""
        self._last_request += 1
        number = self._last_request
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._metrics_requests[number] = waiting
        self._send_counts()
        self.channel.send(messages.MetricsRequest(number))
        try:
            async with asyncio.timeout(METRICS_TIMEOUT_S):
                return await waiting
        except TimeoutError:
            raise HttpError(503, "the metrics of the other processes cannot be had", []) from None
        finally:
            del self._metrics_requests[number]

    async def stop(self) -> None:
        """Send the last counts and close the channel. Returns when everything is sent."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._send_counts()
        await self.channel.flush()

    def _start_task(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        """Shut the worker down if a task has failed; the parent replaces it."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._log.error("a worker gives up", worker=self._worker, error=locate_error(error))
            self.channel.close()
            self._leave()

    def _handle_message(self, message: messages.ParentMessage, body: bytes) -> None:
        """Handle a message of the parent. Documents and commands are queued, everything else is done immediately."""
        if isinstance(message, messages.Prepare | messages.Switch):
            self._document_queue.put_nowait((message, body))
        elif isinstance(message, messages.Checked):
            self._holder.checked_at = message.moment
        elif isinstance(message, messages.CountsRequest):
            self._send_counts()
            self.channel.send(messages.CountsSent(message.number))
        elif isinstance(message, messages.Ping):
            self.channel.send(messages.Pong())
        elif isinstance(message, messages.MetricsText):
            self._resolve_request(message.number, body)
        elif isinstance(message, messages.Leave):
            self._leave()
        elif isinstance(message, Command):
            self._command_queue.put_nowait(message)

    def _resolve_request(self, number: int, text: bytes) -> None:
        waiting = self._metrics_requests.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(text)

    def _leave(self) -> None:
        if self._commands is not None:
            self._commands.leave()

    async def _handle_documents(self) -> None:
        """Prepare documents and switch to them, in the order of the messages."""
        while True:
            message, body = await self._document_queue.get()
            if isinstance(message, messages.Prepare):
                await self._prepare_document(message.number, body)
            else:
                self._switch(message.number)

    async def _run_commands(self, commands: WorkerCommands) -> None:
        """Carry out the commands of the parent, in their order."""
        while True:
            message = await self._command_queue.get()
            if isinstance(message, messages.Adopt):
                await commands.adopt(message.group)
            elif isinstance(message, messages.Release):
                commands.release(message.group)
            elif isinstance(message, messages.Drain):
                commands.drain()
            else:
                commands.reload(message.options)
                self.channel.send(messages.Reloaded(message.number))

    async def _prepare_document(self, number: int, body: bytes) -> None:
        prepared = self._prepared[number] = await self._prepare(body, self._holder.current)
        for old in sorted(self._prepared)[: -messages.KEPT_DOCUMENTS]:
            del self._prepared[old]
        self.channel.send(messages.Prepared(number, prepared.snapshot.revision))

    def _switch(self, number: int) -> None:
        prepared = self._prepared.pop(number)
        self._holder.replace(prepared.snapshot, prepared.document, len(prepared.problems))
        self.channel.send(messages.Switched(number))
        self._log.debug("configuration switched", worker=self._worker, revision=prepared.snapshot.revision)

    async def _send_regularly(self, sources: Sources) -> None:
        new_readings = NewReadings(sources.status_counts)
        for check in itertools.count(1):
            await asyncio.sleep(SEND_INTERVAL_S)
            if check % FULL_SEND_EVERY:
                self._send(new_readings.take_new())
            else:
                self._send_counts()

    def _schedule_send(self) -> None:
        """Send reported usage before the next iteration of the loop: the SDKs' requests are answered in this one."""
        if not self._is_send_scheduled:
            self._is_send_scheduled = True
            asyncio.get_running_loop().call_soon(self._send_reports)

    def _send_reports(self) -> None:
        self._is_send_scheduled = False
        self._send({})

    def _send_counts(self) -> None:
        """Send everything that was counted since the last message."""
        self._send({} if self._sources is None else readings(self._sources))

    def _send(self, found: Readings) -> None:
        """Send usage, and the changes in these readings, if there are any."""
        counts = messages.make_counts(self._counters, self._changes.take_changes(found))
        if counts is not None:
            self.channel.send(counts)

    async def _leave_with_parent(self) -> None:
        """Shut the worker down when the parent has ended."""
        await self.channel.closed.wait()
        self._log.warn("the parent process is gone, this worker ends", worker=self._worker)
        self._leave()
