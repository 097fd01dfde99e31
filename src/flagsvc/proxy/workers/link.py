"""The worker's side: serves the configuration that the parent sends, and sends the counts to the parent.

It checks the counters every few milliseconds, if requests were answered since the last check. A notification by the counters would
cost time in every request.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Protocol

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, locate_error
from flagsvc.http.messages import HttpError
from flagsvc.http.metrics import Readings
from flagsvc.proxy.api.metrics import Sources, readings
from flagsvc.proxy.configuration import Holder, Preparer
from flagsvc.proxy.configuration.prepare import PreparedDocument
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel
from flagsvc.proxy.workers.metric_sums import MetricChanges, NewReadings
from flagsvc.proxy.workers.parent_tokens import ParentTokens

SEND_INTERVAL_S = 0.05
"""Seconds between two checks of the counters. A killed worker loses the counts since the last check, except reports of SDKs."""
FULL_SEND_EVERY = 20
"""Each time after this many checks all metrics are sent, also those whose loss does not matter."""
METRICS_TIMEOUT_S = 5.0
"""Seconds that a scrape waits for the parent."""

Command = messages.Adopt | messages.Release | messages.Drain
"""The messages that `WorkerCommands` carries out in their order."""


class LinkedFeed:
    """One environment of a worker: `holder` is filled, `counters` are sent, and `prepare` compiles its documents."""

    def __init__(self, holder: Holder, counters: UsageCounters, prepare: Preparer) -> None:
        self.holder = holder
        self.counters = counters
        self.prepare = prepare
        self.prepared: dict[int, PreparedDocument] = {}


class WorkerCommands(Protocol):
    """The commands of the parent to a worker, about sockets, environments and shutdown."""

    async def adopt(self, group: int) -> None:
        """Also take connections of this group of sockets."""

    def release(self, group: int) -> None:
        """Take no more connections of this group."""

    def reload(self, environments: list[messages.EnvironmentOptions]) -> None:
        """Serve these environments. Without any, reload files such as certificates."""

    def drain(self) -> None:
        """Fail readiness, so that callers go elsewhere."""

    def leave(self) -> None:
        """Start an orderly shutdown."""


class ParentLink:
    """Fills the holders of all environments, and sends their counts and the metrics. `channel` must be connected before `start`.

    `count_answered` returns how many requests the worker has answered. As long as it returns the same number, only every
    `FULL_SEND_EVERY`th check looks at the counters.
    """

    def __init__(self, *, worker: int, log: Logger, clock: Clock) -> None:
        self.channel: Channel[messages.ParentMessage] = Channel(messages.decode_parent_message, self._receive_message)
        self._environments: dict[int, LinkedFeed] = {}
        self._worker = worker
        self._log = log
        self._sources: Sources | None = None
        self._commands: WorkerCommands | None = None
        self._changes = MetricChanges()
        self._early: list[tuple[messages.ParentMessage, bytes]] = []
        self._document_queue: asyncio.Queue[tuple[messages.Prepare | messages.Switch, bytes]] = asyncio.Queue()
        self._command_queue: asyncio.Queue[Command] = asyncio.Queue()
        self.tokens = ParentTokens(self.channel.send, clock)
        self.on_revoke: Callable[[str], object] = lambda token: None
        self.count_answered: Callable[[], int] = itertools.count().__next__
        self._handlers: dict[type, Callable[[Any], object]] = {
            messages.Checked: self._note_check,
            messages.Failed: self._note_failure,
            messages.Reload: self._reload,
            messages.CountsRequest: self._report_counts,
            messages.Ping: lambda _: self.channel.send(messages.Pong()),
            messages.TokenAnswer: self.tokens.resolve,
            messages.ValidTokens: lambda message: self.tokens.note_valid(message.digests),
            messages.Revoked: lambda message: self.on_revoke(message.token),
            messages.Leave: lambda _: self._leave(),
        }
        self._metrics_requests: dict[int, asyncio.Future[bytes]] = {}
        self._last_request = 0
        self._is_send_scheduled = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def add_feed(self, number: int, environment: LinkedFeed) -> None:
        """Fill the holder of an environment, and send its counts."""
        self._environments[number] = environment
        environment.counters.on_report = self._schedule_send

    def remove_feed(self, number: int) -> None:
        """Send the last counts of an environment, and forget it."""
        self._send_counts()
        del self._environments[number]

    def start(self, sources: Sources, commands: WorkerCommands) -> None:
        """Start to handle documents and commands, and to send counts."""
        self._sources, self._commands = sources, commands
        loops = self._handle_documents(), self._run_commands(commands), self._send_regularly(sources)
        for work in (*loops, self._leave_with_parent()):
            self._start_task(work)
        early, self._early = self._early, []
        for message, body in early:
            self._handle_message(message, body)

    def report_serving(self) -> None:
        self.channel.send(messages.Serving())

    async def fetch_metrics(self, is_open: bool = False) -> bytes:
        """Return the metrics of all processes. Raises HttpError (503) if the parent does not answer."""
        self._last_request += 1
        number = self._last_request
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._metrics_requests[number] = waiting
        self._send_counts()
        self.channel.send(messages.MetricsRequest(number, is_open))
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
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """Log an error, and shut the worker down. The parent replaces it."""
        self._log.error("a worker gives up", worker=self._worker, error=locate_error(error))
        self.channel.close()
        self._leave()

    def _receive_message(self, message: messages.ParentMessage, body: bytes) -> None:
        """Handle a message of the parent. A Reload before the start waits for it, with all messages that follow."""
        if self._commands is None and (self._early or isinstance(message, messages.Reload)):
            self._early.append((message, body))
        else:
            self._handle_message(message, body)

    def _handle_message(self, message: messages.ParentMessage, body: bytes) -> None:
        """Handle a message of the parent. Documents and commands are queued, everything else is done immediately."""
        if isinstance(message, messages.Prepare | messages.Switch):
            self._take_document(message, body)
        elif isinstance(message, messages.MetricsText):
            self._resolve_request(message.number, body)
        elif isinstance(message, Command):
            self._command_queue.put_nowait(message)
        else:
            handle = self._handlers.get(type(message))
            if handle is not None:
                handle(message)

    def _note_check(self, message: messages.Checked) -> None:
        environment = self._environments.get(message.environment)
        if environment is not None:
            environment.holder.note_check(message.moment)

    def _note_failure(self, message: messages.Failed) -> None:
        environment = self._environments.get(message.environment)
        if environment is not None:
            environment.holder.failures = 1

    def _report_counts(self, message: messages.CountsRequest) -> None:
        self._send_counts()
        self.channel.send(messages.CountsSent(message.number))

    def _take_document(self, message: messages.Prepare | messages.Switch, body: bytes) -> None:
        """Queue a document. A prepared document is served now, because a Reload that makes its environment current may follow."""
        environment = self._environments.get(message.environment)
        known = {} if environment is None or not self._document_queue.empty() else environment.prepared
        if environment is not None and isinstance(message, messages.Switch) and message.number in known:
            self._switch(environment, message)
        else:
            self._document_queue.put_nowait((message, body))

    def _reload(self, message: messages.Reload) -> None:
        """Serve other environments. This is done before the next message, which may be a document of a new environment."""
        assert self._commands is not None  # _receive_message waits for the start
        try:
            self._commands.reload(message.environments)
        except Exception as error:
            # The parent has checked the options. The files that they name may have changed since.
            self._give_up(error)
        else:
            self._send_counts()  # the parent expects none of environments that have ended
            self.channel.send(messages.Reloaded(message.number))

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
            environment = self._environments.get(message.environment)
            if environment is None:
                continue  # it is no longer served
            if isinstance(message, messages.Prepare):
                await self._prepare_document(environment, message, body)
            else:
                self._switch(environment, message)

    async def _run_commands(self, commands: WorkerCommands) -> None:
        while True:
            message = await self._command_queue.get()
            if isinstance(message, messages.Adopt):
                await commands.adopt(message.group)
            elif isinstance(message, messages.Release):
                commands.release(message.group)
            else:
                commands.drain()

    async def _prepare_document(self, environment: LinkedFeed, message: messages.Prepare, body: bytes) -> None:
        prepared = await environment.prepare(body, environment.holder.current)
        environment.prepared[message.number] = prepared
        for old in sorted(environment.prepared)[: -messages.KEPT_DOCUMENTS]:
            del environment.prepared[old]
        self.channel.send(messages.Prepared(message.number, prepared.snapshot.revision, message.environment))

    def _switch(self, environment: LinkedFeed, message: messages.Switch) -> None:
        prepared = environment.prepared.pop(message.number)
        counts = len(prepared.left_out), len(prepared.odd)
        environment.holder.replace(prepared.snapshot, prepared.document, *counts)
        self.channel.send(messages.Switched(message.number, message.environment))
        self._log.debug("configuration switched", worker=self._worker, revision=prepared.document.revision)

    async def _send_regularly(self, sources: Sources) -> None:
        new_readings = NewReadings(sources)
        seen = -1
        for check in itertools.count(1):
            await asyncio.sleep(SEND_INTERVAL_S)
            answered = self.count_answered()
            if check % FULL_SEND_EVERY == 0:
                self._send_counts()
            elif answered != seen:
                self._send(new_readings.take_new())
            seen = answered

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
        """Send the usage of each environment, and the changes in these readings, if there are any."""
        samples = self._changes.take_changes(found)
        for number, environment in self._environments.items():
            counts = messages.make_counts(environment.counters, samples, number)
            if counts is not None:
                self.channel.send(counts)
            samples = {}

    async def _leave_with_parent(self) -> None:
        """Shut the worker down when the parent has ended."""
        await self.channel.closed.wait()
        self._log.warn("the parent process is gone, this worker ends", worker=self._worker)
        self._leave()
