"""The parent's side: starts workers, replaces those that end, adds up their counts, and renders the metrics of all of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec

from flagsvc.core.background import SupervisedTask, delay_after_failure
from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, describe_error
from flagsvc.proxy.api.metrics import WorkerFigures
from flagsvc.proxy.tokens import Admission, UnavailableError
from flagsvc.proxy.usage import UsageCounters, UsageSource
from flagsvc.proxy.usage.unsent import from_wire
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.proxy.workers.distribution import DocumentDistribution
from flagsvc.proxy.workers.metric_sums import MetricSums
from flagsvc.proxy.workers.slot import Child, Conditions, ProcessPulse, WorkerSlot, wait_for_exit

STEADY_S = 10.0
"""A worker that ends within this many seconds of its start counts as failed to start."""
PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""The bounds of the pause before the next start of a worker, from its second failed start in a row on."""
IDLE_POOL_S = 1.0
"""If no worker takes connections, the next one starts at the latest this many seconds after the last start of any worker."""
PAUSE_STEP_S = 0.1
"""Seconds between two checks whether a pause must end early."""


ProgressMessage = messages.Serving | messages.Prepared | messages.Switched | messages.Reloaded | messages.CountsSent
"""A message with which a worker acknowledges a step."""
LEAST_RETRY_S = 1.0
"""The least seconds after which a worker is told to ask again."""
LookUpTokens = Callable[[Sequence[str], bytes, float], Awaitable[Mapping[str, Admission]]]
"""Returns what tokens of a caller from a network open, within some seconds. Those that open nothing are left out.

Raises UnavailableError.
"""
CHECKS_PER_TIMEOUT = 20
"""The number of checks during the time that a worker may be silent."""
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.05, 1.0
"""The bounds of the seconds between two checks."""
MAX_LATE_INTERVALS = 5
"""A late check counts for at most this many intervals: a suspended machine, for example, delays parent and workers alike."""
START_TIMEOUT_S = 30.0
"""Seconds that a new process has for its first answer: it must load Python and custom code."""


class PoolTimeouts(NamedTuple):
    """How many seconds the parent waits for workers.

    `late`: for the slowest worker to prepare a document or to take new keys, before the others go on. `stuck`: longer than
    `late`, before the slowest worker is replaced. `report`: for the counts of all. `leave`: for all to end.
    """

    late: float = 5.0
    stuck: float = 60.0
    report: float = 0.25
    leave: float = 13.0


Spawn: TypeAlias = Callable[[socket.socket], Child]
"""Starts a worker's process with one end of a socket pair. Raises OSError."""


class PooledFeed(NamedTuple):
    """The counters of an environment, which get the usage that workers count, and its documents in all workers."""

    counters: UsageCounters
    distribution: DocumentDistribution


class WorkerPool:
    """All workers, from `start` to `stop`. `restarts` counts the replaced workers, `metric_sums` adds up the metrics of all."""

    def __init__(
        self,
        size: int,
        spawn: Spawn,
        *,
        sockets: Sequence[list[int]],
        render_metrics: Callable[[bool], bytes],
        look_up: LookUpTokens,
        list_valid_tokens: Callable[[], Sequence[str]],
        options: Mapping[str, Any],
        has_started: Callable[[], bool],
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        timeouts: PoolTimeouts | None = None,
        timeout_s: float = 0,
    ) -> None:
        """Take the number of workers, the function that starts one, and what each is sent.

        Each worker is sent `sockets`, which are groups of listening sockets by file descriptor. `render_metrics` returns the
        metrics of all processes, as OpenMetrics if True, `list_valid_tokens` the digests of callers' tokens that are known to be
        valid, and `draw` random numbers in [0, 1). A worker that does not answer for `timeout_s` seconds is replaced, unless that
        is 0. `options` are the options of the process, and `has_started` tells whether each environment was tried once. Before the
        start, `add_feed` and `use_environments` say what the workers serve.
        """
        self.restarts = 0
        self.metric_sums = MetricSums()
        self._spawn = spawn
        self._served: list[messages.EnvironmentOptions] = []
        self._former: list[messages.EnvironmentOptions] = []
        self._environments: dict[int, PooledFeed] = {}
        self._sockets = list(sockets)
        self._render_metrics = render_metrics
        self._look_up = look_up
        self._list_valid_tokens = list_valid_tokens
        self._options = dict(options)
        self._has_started = has_started
        self._clock = clock
        self._log = log
        self._draw = draw
        self._timeouts = timeouts or PoolTimeouts()
        self._is_draining = False
        self._is_leaving = False
        self._last_report = 0
        self._last_reload = 0
        self._last_start = clock.monotonic()
        self._conditions = Conditions()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = [WorkerSlot(number) for number in range(size)]
        self._adoption = SocketAdoption(self._slots, len(self._sockets))
        self._loops = [
            SupervisedTask(f"worker {slot.number}", partial(self._keep_running, slot), clock=clock, log=log, draw=draw)
            for slot in self._slots
        ]
        self.heartbeat = WorkerHeartbeat(self._slots, timeout_s=timeout_s, clock=clock, log=log)
        if timeout_s:
            self._loops.append(SupervisedTask("heartbeat", self.heartbeat.run, clock=clock, log=log, draw=draw))

    @property
    def workers(self) -> int:
        """The number of workers that take connections."""
        return sum(slot.is_serving for slot in self._slots)

    def figures(self) -> WorkerFigures:
        """Return how many workers take connections, and how many were replaced."""
        return WorkerFigures(self.workers, self.restarts, self.heartbeat.hangs)

    @property
    def is_answering(self) -> bool:
        return self.heartbeat.is_answering

    @property
    def loop_restarts(self) -> int:
        return sum(loop.restarts for loop in self._loops)

    def pids(self) -> list[int]:
        return [slot.child.pid for slot in self._slots if slot.child is not None]

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    async def wait_started(self) -> None:
        """Wait until every worker takes connections or has failed to start, and at least one takes them."""
        await self._conditions.wait_for(
            lambda: self.workers > 0 and all(slot.is_serving or slot.is_vacant for slot in self._slots),
        )

    async def stop(self) -> None:
        """Have all workers finish open requests and send their counts. Returns when all have ended."""
        self._is_leaving = True
        for slot in self._slots:
            if slot.is_serving:
                slot.send(messages.Leave())
            else:
                slot.kill()  # it has no open requests
        if not await self._conditions.wait_for(lambda: not self.pids(), self._timeouts.leave):
            self._log.warn("workers did not end in time and were ended", workers=len(self.pids()))
            for slot in self._slots:
                slot.kill()
            await self._conditions.wait_for(lambda: not self.pids(), self._timeouts.leave)
        for loop in self._loops:
            await loop.stop()
        for task in self._tasks:
            task.cancel()

    def drain(self) -> None:
        """Have all workers fail readiness. A worker that ends in order from now on is not replaced, because the proxy is ending."""
        self._is_draining = True
        for slot in self._slots:
            slot.send(messages.Drain())

    def add_feed(self, number: int, counters: UsageCounters, log: Logger) -> DocumentDistribution:
        """Add an environment, and return its documents. `counters` get the usage that workers count."""
        late, stuck = self._timeouts.late, self._timeouts.stuck
        made = DocumentDistribution(self._slots, self._conditions, log, late_s=late, stuck_s=stuck, environment=number)
        self._environments[number] = PooledFeed(counters, made)
        return made

    def forget_feed(self, number: int) -> None:
        """Forget an environment that no worker serves any more."""
        self._environments.pop(number).distribution.end()
        for slot in self._slots:
            slot.forget(number)

    def use_environments(
        self, served: Sequence[messages.EnvironmentOptions], former: Sequence[messages.EnvironmentOptions] = ()
    ) -> None:
        """Have all workers serve these environments with these options. A new worker also gets the `former` ones."""
        self._served, self._former = list(served), list(former)
        self._last_reload += 1
        for slot in self._slots:
            slot.send(messages.Reload(self._last_reload, self._served))

    async def wait_reloaded(self) -> None:
        """Wait until all workers use the options that they were told last, or until the slowest has had time enough.

        A worker may still wait for a configuration then.
        """
        number = self._last_reload
        checks = [slot.pending_check(lambda slot: slot.last_reload < number) for slot in self._slots]
        if not await self._conditions.wait_for(lambda: not any(check() for check in checks), self._timeouts.late):
            self._log.warn("a worker is late with new keys, the others do not wait")

    def reload_files(self) -> None:
        """Have all workers reload the files that they read themselves, such as certificates."""
        for slot in self._slots:
            slot.send(messages.Reload(self._last_reload))

    async def gather_counts(self) -> None:
        """Have every worker send its counts. Returns when all have, or when the time for the slowest is over."""
        self._last_report += 1
        number = self._last_report
        serving = [slot for slot in self._slots if slot.is_serving]
        checks = [slot.pending_check(lambda slot: slot.last_report < number) for slot in serving]
        for slot in self._slots:
            slot.send(messages.CountsRequest(number))
        await self._conditions.wait_for(lambda: not any(check() for check in checks), self._timeouts.report)

    # ---- one worker

    async def _keep_running(self, slot: WorkerSlot) -> None:
        """Run a process in a slot, and replace it whenever it ends, until the pool stops."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            status = await self._run_process(slot)
            if self._is_expected_exit(status):
                return
            self.restarts += 1
            steady = slot.pulse.is_given_up or self._clock.monotonic() - began >= STEADY_S
            failures = 0 if steady else failures + 1
            self._log.error("a worker has ended and is replaced", worker=slot.number, status=status, failures=failures)
            if failures > 1:
                await self._pause(delay_after_failure(failures - 1, self._draw(), PAUSE_S, ceiling=LONGEST_PAUSE_S))
                if self._is_expected_exit(status):
                    return

    async def _pause(self, seconds: float) -> None:
        """Wait before the next start of a worker, but not longer than until the pool urgently needs one."""
        while seconds > 0 and not self._needs_worker():
            step = min(seconds, PAUSE_STEP_S)
            await self._clock.sleep(step)
            seconds -= step

    def _needs_worker(self) -> bool:
        """Return whether no worker takes connections and none was started a moment ago."""
        return not self.workers and self._clock.monotonic() - self._last_start >= IDLE_POOL_S

    def _is_expected_exit(self, status: int | str) -> bool:
        """Return whether a worker that has ended with this status is not to be replaced."""
        return self._is_leaving or (self._is_draining and status == 0)

    async def _run_process(self, slot: WorkerSlot) -> int | str:
        """Run a process until it ends. Returns its exit status, or why it could not be started."""
        slot.pulse, self._last_start = ProcessPulse(), self._clock.monotonic()
        try:
            child, here = spawn_child(self._spawn)
        except OSError as error:
            self._on_exit(slot)
            return describe_error(error)
        slot.child = child
        try:
            await self._run_channel(slot, here)
        finally:
            self._on_exit(slot)
            status = await asyncio.to_thread(wait_for_exit, child)
            slot.child = None
            self._conditions.notify()
        return status

    async def _run_channel(self, slot: WorkerSlot, here: socket.socket) -> None:
        channel = Channel(messages.decode_worker_message, lambda message, _: self._handle_message(slot, message))
        await connect_channel(here, channel)
        slot.open(channel)
        served, former = (
            [msgspec.structs.replace(each, has_configuration=self._has_configuration(each)) for each in listed]
            for listed in (self._served, self._former)
        )
        slot.send(messages.Welcome(slot.number, served, former, self._sockets, self._options, self._has_started()))
        slot.send_valid_tokens(self._list_valid_tokens())
        slot.last_reload = self._last_reload
        for each in self._environments.values():
            each.distribution.send_current(slot)
        if self._is_draining:
            slot.send(messages.Drain())
        if self._is_leaving:
            slot.kill()
        await channel.closed.wait()

    def _has_configuration(self, served: messages.EnvironmentOptions) -> bool:
        """Return whether an environment has a configuration, which a new worker is sent immediately."""
        known = self._environments.get(served.environment)
        return known is not None and known.distribution.has_configuration

    def _on_exit(self, slot: WorkerSlot) -> None:
        """Note that the process in a slot has ended, or could not be started."""
        slot.close()
        self.metric_sums.forget_worker(slot.number)
        self._reassign_sockets()

    def _reassign_sockets(self) -> None:
        """Ensure that every group of sockets has a worker that takes its connections."""
        if not self._is_leaving:
            self._adoption.reassign()
        self._conditions.notify()

    # ---- messages of workers

    def _handle_message(self, slot: WorkerSlot, message: messages.WorkerMessage) -> None:
        if isinstance(message, messages.Counts):
            self._add_counts(slot, message)
        elif isinstance(message, messages.Pong):
            slot.pulse.record_answer()
        elif isinstance(message, messages.MetricsRequest):
            self._start_reply(self._send_metrics(slot, slot.channel, message))
        elif isinstance(message, messages.TokenQuestion):
            self._start_reply(self._answer_question(slot, slot.channel, message))
        else:
            self._record_progress(slot, message)
            self._conditions.notify()

    def _record_progress(self, slot: WorkerSlot, message: ProgressMessage) -> None:
        if isinstance(message, messages.Prepared):
            documents = slot.documents(message.environment)
            documents.prepared = max(documents.prepared, message.number)  # a document sent late may be older
        elif isinstance(message, messages.Switched):
            slot.documents(message.environment).served = message.number
        elif isinstance(message, messages.CountsSent):
            slot.last_report = message.number
        elif isinstance(message, messages.Reloaded):
            slot.last_reload = message.number
        else:
            slot.is_serving, slot.is_vacant = True, False
            self._reassign_sockets()
            if self._is_leaving:
                slot.send(messages.Leave())

    def _add_counts(self, slot: WorkerSlot, counts: messages.Counts) -> None:
        known = self._environments.get(counts.environment)
        if known is not None:
            for usage in counts.usage:
                known.counters.merge(from_wire(usage))
            for source, registration in counts.registrations:
                known.counters.register(UsageSource(*source), registration)
        self.metric_sums.add(slot.number, {tuple(key): value for key, value in counts.samples})

    def revoke_token(self, token: str) -> None:
        """Have all workers accept a token no longer that was looked up."""
        for slot in self._slots:
            slot.send(messages.Revoked(token))

    def tell_valid_tokens(self, digests: Sequence[str]) -> None:
        """Tell all workers that the upstream knows tokens."""
        for slot in self._slots:
            slot.send_valid_tokens(digests)

    def _start_reply(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_metrics(self, slot: WorkerSlot, channel: object, request: messages.MetricsRequest) -> None:
        """Gather the counts of all workers and send the metrics, unless the worker that asked has ended meanwhile."""
        await self.gather_counts()
        if slot.channel is channel:
            slot.send(messages.MetricsText(request.number), self._render_metrics(request.is_open))

    async def _answer_question(self, slot: WorkerSlot, channel: object, question: messages.TokenQuestion) -> None:
        """Answer a worker's question about tokens, unless the worker has ended meanwhile."""
        answer = await answer_question(self._look_up, question)
        if slot.channel is channel:
            slot.send(answer)


def spawn_child(spawn: Spawn) -> tuple[Child, socket.socket]:
    """Start a process; return it and the parent's end of its socket pair. Raises OSError."""
    here, there = socket.socketpair()
    with there:
        try:
            return spawn(there), here
        except BaseException:
            here.close()
            raise


async def answer_question(look_up: LookUpTokens, question: messages.TokenQuestion) -> messages.TokenAnswer:
    network = bytes.fromhex(question.network)
    try:
        found = await look_up(question.tokens, network, question.seconds)
    except UnavailableError as error:
        return messages.TokenAnswer(question.number, retry_s=max(error.seconds, LEAST_RETRY_S))
    return messages.TokenAnswer(question.number, [found.get(token) for token in question.tokens])


class SocketAdoption:
    """The groups of sockets that another worker has adopted. A worker and its own group have the same number.

    The kernel gives each group of listening sockets its share of new connections, whether a process accepts them or not. They wait
    in the queue, which the parent keeps open. So no connection is lost, but some worker must accept them.
    """

    def __init__(self, slots: Sequence[WorkerSlot], groups: int) -> None:
        self._slots = slots
        self._groups = groups
        self._adopters: dict[int, WorkerSlot] = {}

    def reassign(self) -> None:
        """Let serving workers adopt the groups of vacant slots, and return groups whose own worker serves again."""
        for slot in self._slots[: self._groups]:
            adopter = self._adopters.get(slot.number)
            if slot.is_serving and adopter is not None:
                del self._adopters[slot.number]
                adopter.send(messages.Release(slot.number))
            elif slot.is_vacant and not slot.is_serving and (adopter is None or not adopter.is_serving):
                self._adopt(slot.number)

    def _adopt(self, group: int) -> None:
        """Give a group to the serving worker that has adopted the fewest groups."""
        self._adopters.pop(group, None)
        serving = [slot for slot in self._slots if slot.is_serving]
        if serving and self._groups > 1:
            chosen = min(serving, key=lambda slot: sum(adopter is slot for adopter in self._adopters.values()))
            self._adopters[group] = chosen
            chosen.send(messages.Adopt(group))


class WorkerHeartbeat:
    """Pings all workers, and kills those that are silent for `timeout_s` seconds. `hangs` counts the killed workers.

    A process that is stopped, or runs custom code without end, keeps its sockets, and the kernel keeps giving it connections.
    Without pings its parent would only see that the process still exists (decision 0018).

    With a timeout of 0 the pool does not run it. The pool also starts the replacements.
    """

    def __init__(self, slots: Sequence[WorkerSlot], *, timeout_s: float, clock: Clock, log: Logger) -> None:
        self.hangs = 0
        self.timeout_s = timeout_s
        self._slots = slots
        self._clock = clock
        self._log = log
        self._interval_s = min(max(timeout_s / CHECKS_PER_TIMEOUT, MIN_INTERVAL_S), MAX_INTERVAL_S)

    @property
    def is_answering(self) -> bool:
        return any(slot.is_serving and 2 * slot.pulse.silent_s <= self.timeout_s for slot in self._slots)

    async def run(self) -> None:
        """Check the workers until cancelled."""
        before = self._clock.monotonic()
        while True:
            await self._clock.sleep(self._interval_s)
            now = self._clock.monotonic()
            for slot in self._slots:
                if slot.channel is not None:
                    self._check(slot, min(now - before, MAX_LATE_INTERVALS * self._interval_s))
            before = now

    def _check(self, slot: WorkerSlot, seconds: float) -> None:
        """Ping a worker, or kill it.

        The time since the previous check is added only after this test. So the parent reads an arrived answer first.
        """
        pulse = slot.pulse
        if pulse.is_given_up:
            return
        if pulse.is_overdue(self.timeout_s, START_TIMEOUT_S):
            self._kill(slot)
        elif pulse.advance(seconds):
            slot.send(messages.Ping())

    def _kill(self, slot: WorkerSlot) -> None:
        pulse, pid = slot.pulse, None if slot.child is None else slot.child.pid
        pulse.is_given_up = True
        self.hangs += 1
        self._log.error("a worker does not answer and is killed", worker=slot.number, pid=pid, silent_s=round(pulse.silent_s, 1))
        slot.kill()
