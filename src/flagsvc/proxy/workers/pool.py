"""The parent's end: starts workers and replaces those that end, hears what they count, answers for all of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from flagsvc.core.background import SupervisedTask
from flagsvc.core.backoff import delay_after_failure
from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, describe_error
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.record import from_wire
from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.adoption import SocketAdoption
from flagsvc.proxy.workers.channel import Channel, connected
from flagsvc.proxy.workers.heartbeat import Heartbeat
from flagsvc.proxy.workers.pulse import ProcessPulse
from flagsvc.proxy.workers.rollout import DocumentRollout
from flagsvc.proxy.workers.slot import Child, Conditions, WorkerSlot, reaped
from flagsvc.proxy.workers.sums import MetricSums

STEADY_S = 10.0
"""A worker that ends sooner after its start than this has failed to start."""
PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""The pause before a worker is started that has failed to, from the second time in a row on."""
ALONE_S = 1.0
"""While nobody takes connections a pause is over when the last start of any worker was so long ago,"""
LOOK_S = 0.1
"""which is looked at so often."""


Step = say.Serving | say.Prepared | say.Switched | say.Reloaded | say.Reported
"""What tells how far a worker has come."""


class RolloutTimeouts(NamedTuple):
    """How many seconds are waited: until the others switch without a late worker (and for it to have new keys), until that one is
    replaced, for reports of what was counted, for all to end.
    """

    late: float = 5.0
    stuck: float = 60.0
    report: float = 0.25
    leave: float = 13.0


class Spawn(Protocol):
    """Starts a worker's process with one end of a socket pair."""

    def __call__(self, end: socket.socket) -> Child:
        """Return the process. Raises OSError."""


class WorkerPool:
    """All workers, from `start` to `stop`. `restarts` counts those that were replaced, `sums` is what they have counted."""

    def __init__(
        self,
        size: int,
        spawn: Spawn,
        *,
        options: Mapping[str, Any],
        sockets: Sequence[list[int]],
        counters: UsageCounters,
        text: Callable[[], bytes],
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        patience: RolloutTimeouts | None = None,
        timeout_s: float = 0,
    ) -> None:
        """Take how many, what starts one, what each is told: options, groups of listening sockets by file descriptor.

        `counters` gets what they counted, `text` gives the metrics of all, `draw` random numbers of [0, 1). A worker that does not
        answer for `timeout_s` seconds is replaced, unless that is 0.
        """
        self.restarts = 0
        self.sums = MetricSums()
        self._spawn = spawn
        self._options = dict(options)
        self._sockets = list(sockets)
        self._counters = counters
        self._text = text
        self._clock = clock
        self._log = log
        self._draw = draw
        self._patience = patience or RolloutTimeouts()
        self._draining = False
        self._leaving = False
        self._reports = 0
        self._reloads = 0
        self._started = clock.monotonic()
        self._watch = Conditions()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seats = [WorkerSlot(number) for number in range(size)]
        self._cover = SocketAdoption(self._seats, len(self._sockets))
        late, stuck = self._patience.late, self._patience.stuck
        self.rollout = DocumentRollout(self._seats, self._watch, log, late_s=late, stuck_s=stuck)
        self._loops = [
            SupervisedTask(f"worker {slot.number}", partial(self._keep, slot), clock=clock, log=log, draw=draw)
            for slot in self._seats
        ]
        self.heartbeat = Heartbeat(self._seats, timeout_s=timeout_s, clock=clock, log=log)
        if timeout_s:
            self._loops.append(SupervisedTask("heartbeat", self.heartbeat.run, clock=clock, log=log, draw=draw))

    @property
    def workers(self) -> int:
        """How many take connections now."""
        return sum(slot.serving for slot in self._seats)

    @property
    def hangs(self) -> int:
        """How many did not answer and were ended; they are among those that were replaced."""
        return self.heartbeat.hangs

    @property
    def answering(self) -> bool:
        """Whether callers find anybody: a worker that takes connections, and answers when it is asked."""
        return self.heartbeat.answering

    @property
    def loop_restarts(self) -> int:
        """How often what keeps a seat taken failed for a reason nobody thought of."""
        return sum(loop.restarts for loop in self._loops)

    def pids(self) -> list[int]:
        """Return the ids of the processes that have not been waited for."""
        return [slot.child.pid for slot in self._seats if slot.child is not None]

    def start(self) -> None:
        """Start all."""
        for loop in self._loops:
            loop.start()

    async def started(self) -> None:
        """Return when workers take connections: all of them, but for those that fell at the start."""
        await self._watch.until(
            lambda: self.workers > 0 and all(slot.serving or slot.fallen for slot in self._seats),
        )

    async def stop(self) -> None:
        """Have all finish what they have begun and send what they counted; return when all have ended."""
        self._leaving = True
        for slot in self._seats:
            if slot.serving:
                slot.tell(say.Leave())
            else:
                slot.kill()  # it has nothing to finish
        if not await self._watch.until(lambda: not self.pids(), self._patience.leave):
            self._log.warn("workers did not end in time and were ended", workers=len(self.pids()))
            for slot in self._seats:
                slot.kill()
            await self._watch.until(lambda: not self.pids(), self._patience.leave)
        for loop in self._loops:
            await loop.stop()
        for task in self._tasks:
            task.cancel()

    def drain(self) -> None:
        """Have all tell callers to go elsewhere. Who ends in order from now on is not replaced: the whole is about to end."""
        self._draining = True
        for slot in self._seats:
            slot.tell(say.Drain())

    async def reload(self, options: Mapping[str, Any]) -> None:
        """Have all go on with these values of options, by field; return when they do, or the late have had time enough."""
        self._options |= options
        self._reloads += 1
        number = self._reloads
        owing = [slot.owing(lambda slot: slot.reloaded < number) for slot in self._seats]
        for slot in self._seats:
            slot.tell(say.Reload(number, dict(options)))
        if not await self._watch.until(lambda: not any(each() for each in owing), self._patience.late):
            self._log.warn("a worker is late with new keys, the others do not wait")

    def look_again(self) -> None:
        """Have all read files again that they read by themselves."""
        for slot in self._seats:
            slot.tell(say.Reload(self._reloads))

    async def gather(self) -> None:
        """Return when every worker has sent what it has counted, or those that are late have had time enough."""
        self._reports += 1
        number = self._reports
        owing = [slot.owing(lambda slot: slot.reported < number) for slot in self._seats if slot.serving]
        for slot in self._seats:
            slot.tell(say.Report(number))
        await self._watch.until(lambda: not any(each() for each in owing), self._patience.report)

    # ---- one worker

    async def _keep(self, slot: WorkerSlot) -> None:
        """Have a process in a seat until the end."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            status = await self._sit(slot)
            if self._expected(status):
                return
            self.restarts += 1
            steady = slot.pulse.ended or self._clock.monotonic() - began >= STEADY_S
            failures = 0 if steady else failures + 1
            self._log.error("a worker has ended and is replaced", worker=slot.number, status=status, failures=failures)
            if failures > 1:
                await self._rest(delay_after_failure(failures - 1, self._draw(), PAUSE_S, ceiling=LONGEST_PAUSE_S))
                if self._expected(status):
                    return

    async def _rest(self, seconds: float) -> None:
        """Wait before a worker is started again; no longer than until one is needed, whichever it is."""
        while seconds > 0 and not self._needed():
            step = min(seconds, LOOK_S)
            await self._clock.sleep(step)
            seconds -= step

    def _needed(self) -> bool:
        """Return whether nobody takes connections, and nobody was started a moment ago either."""
        return not self.workers and self._clock.monotonic() - self._started >= ALONE_S

    def _expected(self, status: int | str) -> bool:
        """Return whether a worker that has ended with this status is not to be replaced."""
        return self._leaving or (self._draining and status == 0)

    async def _sit(self, slot: WorkerSlot) -> int | str:
        """Start a process and return its exit status when it has ended, or why there is none."""
        slot.pulse, self._started = ProcessPulse(), self._clock.monotonic()
        try:
            child, here = started(self._spawn)
        except OSError as error:
            self._on_exit(slot)
            return describe_error(error)
        slot.child = child
        try:
            await self._serve(slot, here)
        finally:
            self._on_exit(slot)
            status = await asyncio.to_thread(reaped, child)
            slot.child = None
            self._watch.changed()
        return status

    async def _serve(self, slot: WorkerSlot, here: socket.socket) -> None:
        """Be there for a process until its end."""
        channel = Channel(say.upward, lambda message, _: self._hear(slot, message))
        await connected(here, channel)
        slot.open(channel)
        slot.tell(say.Welcome(slot.number, self._options, self._sockets, self.rollout.warm))
        self.rollout.bring(slot)
        if self._draining:
            slot.tell(say.Drain())
        if self._leaving:
            slot.kill()
        await channel.closed.wait()

    def _on_exit(self, slot: WorkerSlot) -> None:
        """Note that there is no process in a seat."""
        slot.shut()
        self.sums.forget(slot.number)
        self._arranged()

    def _arranged(self) -> None:
        """See to it that somebody takes every connection."""
        if not self._leaving:
            self._cover.arrange()
        self._watch.changed()

    # ---- what they say

    def _hear(self, slot: WorkerSlot, message: say.Up) -> None:
        """Take a message."""
        if isinstance(message, say.Counts):
            self._count(slot, message)
        elif isinstance(message, say.Pong):
            slot.pulse.answered()
        elif isinstance(message, say.Ask):
            self._answer(slot, message.number)
        else:
            self._note(slot, message)
            self._watch.changed()

    def _note(self, slot: WorkerSlot, message: Step) -> None:
        """Note how far a worker has come."""
        if isinstance(message, say.Prepared):
            slot.prepared = max(slot.prepared, message.number)  # one that was given late may be older
        elif isinstance(message, say.Switched):
            slot.switched = message.number
        elif isinstance(message, say.Reported):
            slot.reported = message.number
        elif isinstance(message, say.Reloaded):
            slot.reloaded = message.number
        else:
            slot.serving, slot.fallen = True, False
            self._arranged()
            if self._leaving:
                slot.tell(say.Leave())

    def _count(self, slot: WorkerSlot, counts: say.Counts) -> None:
        """Add what a worker counted."""
        if counts.usage is not None:
            self._counters.merge(from_wire(counts.usage))
        self.sums.add(slot.number, {tuple(key): value for key, value in counts.samples})

    def _answer(self, slot: WorkerSlot, number: int) -> None:
        """Have a worker get the metrics of all."""
        task = asyncio.get_running_loop().create_task(self._write(slot, slot.channel, number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, slot: WorkerSlot, channel: object, number: int) -> None:
        """Gather the counts of all and send the text; a worker that asked and is gone gets none."""
        await self.gather()
        if slot.channel is channel:
            slot.tell(say.Text(number), self._text())


def started(spawn: Spawn) -> tuple[Child, socket.socket]:
    """Return a new process, and the parent's end of its socket pair. Raises OSError."""
    here, there = socket.socketpair()
    with there:
        try:
            return spawn(there), here
        except BaseException:
            here.close()
            raise
