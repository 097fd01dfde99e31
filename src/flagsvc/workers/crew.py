"""The parent's end: starts workers and replaces those that end, hears what they count, answers for all of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from flagsvc.clock import Clock
from flagsvc.log import Logger, in_brief
from flagsvc.upstream.pace import delay_after_failure
from flagsvc.upstream.supervised import Supervised
from flagsvc.usage import UsageCounters
from flagsvc.usage.record import from_wire
from flagsvc.workers import messages as say
from flagsvc.workers.channel import Channel, connected
from flagsvc.workers.cover import Cover
from flagsvc.workers.heartbeat import Heartbeat
from flagsvc.workers.pulse import Pulse
from flagsvc.workers.rollout import Rollout
from flagsvc.workers.seat import Child, Seat, Watch, reaped
from flagsvc.workers.sums import Sums

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


class Patience(NamedTuple):
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


class Crew:
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
        patience: Patience | None = None,
        timeout_s: float = 0,
    ) -> None:
        """Take how many, what starts one, what each is told: options, groups of listening sockets by file descriptor.

        `counters` gets what they counted, `text` gives the metrics of all, `draw` random numbers of [0, 1). A worker that does not
        answer for `timeout_s` seconds is replaced, unless that is 0.
        """
        self.restarts = 0
        self.sums = Sums()
        self._spawn = spawn
        self._options = dict(options)
        self._sockets = list(sockets)
        self._counters = counters
        self._text = text
        self._clock = clock
        self._log = log
        self._draw = draw
        self._patience = patience or Patience()
        self._draining = False
        self._leaving = False
        self._reports = 0
        self._reloads = 0
        self._started = clock.monotonic()
        self._watch = Watch()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seats = [Seat(number) for number in range(size)]
        self._cover = Cover(self._seats, len(self._sockets))
        late, stuck = self._patience.late, self._patience.stuck
        self.rollout = Rollout(self._seats, self._watch, log, late_s=late, stuck_s=stuck)
        self._loops = [
            Supervised(f"worker {seat.number}", partial(self._keep, seat), clock=clock, log=log, draw=draw)
            for seat in self._seats
        ]
        self.heartbeat = Heartbeat(self._seats, timeout_s=timeout_s, clock=clock, log=log)
        if timeout_s:
            self._loops.append(Supervised("heartbeat", self.heartbeat.run, clock=clock, log=log, draw=draw))

    @property
    def workers(self) -> int:
        """How many take connections now."""
        return sum(seat.serving for seat in self._seats)

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
        return [seat.child.pid for seat in self._seats if seat.child is not None]

    def start(self) -> None:
        """Start all."""
        for loop in self._loops:
            loop.start()

    async def started(self) -> None:
        """Return when workers take connections: all of them, but for those that fell at the start."""
        await self._watch.until(
            lambda: self.workers > 0 and all(seat.serving or seat.fallen for seat in self._seats),
        )

    async def stop(self) -> None:
        """Have all finish what they have begun and send what they counted; return when all have ended."""
        self._leaving = True
        for seat in self._seats:
            if seat.serving:
                seat.tell(say.Leave())
            else:
                seat.kill()  # it has nothing to finish
        if not await self._watch.until(lambda: not self.pids(), self._patience.leave):
            self._log.warn("workers did not end in time and were ended", workers=len(self.pids()))
            for seat in self._seats:
                seat.kill()
            await self._watch.until(lambda: not self.pids(), self._patience.leave)
        for loop in self._loops:
            await loop.stop()
        for task in self._tasks:
            task.cancel()

    def drain(self) -> None:
        """Have all tell callers to go elsewhere. Who ends in order from now on is not replaced: the whole is about to end."""
        self._draining = True
        for seat in self._seats:
            seat.tell(say.Drain())

    async def reload(self, options: Mapping[str, Any]) -> None:
        """Have all go on with these values of options, by field; return when they do, or the late have had time enough."""
        self._options |= options
        self._reloads += 1
        number = self._reloads
        owing = [seat.owing(lambda seat: seat.reloaded < number) for seat in self._seats]
        for seat in self._seats:
            seat.tell(say.Reload(number, dict(options)))
        if not await self._watch.until(lambda: not any(each() for each in owing), self._patience.late):
            self._log.warn("a worker is late with new keys, the others do not wait")

    def look_again(self) -> None:
        """Have all read files again that they read by themselves."""
        for seat in self._seats:
            seat.tell(say.Reload(self._reloads))

    async def gather(self) -> None:
        """Return when every worker has sent what it has counted, or those that are late have had time enough."""
        self._reports += 1
        number = self._reports
        owing = [seat.owing(lambda seat: seat.reported < number) for seat in self._seats if seat.serving]
        for seat in self._seats:
            seat.tell(say.Report(number))
        await self._watch.until(lambda: not any(each() for each in owing), self._patience.report)

    # ---- one worker

    async def _keep(self, seat: Seat) -> None:
        """Have a process in a seat until the end."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            status = await self._sit(seat)
            if self._expected(status):
                return
            self.restarts += 1
            steady = seat.pulse.ended or self._clock.monotonic() - began >= STEADY_S
            failures = 0 if steady else failures + 1
            self._log.error("a worker has ended and is replaced", worker=seat.number, status=status, failures=failures)
            if failures > 1:
                await self._rest(delay_after_failure(failures - 1, self._draw(), PAUSE_S, most=LONGEST_PAUSE_S))
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

    async def _sit(self, seat: Seat) -> int | str:
        """Start a process and return its exit status when it has ended, or why there is none."""
        seat.pulse, self._started = Pulse(), self._clock.monotonic()
        try:
            child, here = started(self._spawn)
        except OSError as error:
            self._fell(seat)
            return in_brief(error)
        seat.child = child
        try:
            await self._serve(seat, here)
        finally:
            self._fell(seat)
            status = await asyncio.to_thread(reaped, child)
            seat.child = None
            self._watch.changed()
        return status

    async def _serve(self, seat: Seat, here: socket.socket) -> None:
        """Be there for a process until its end."""
        channel = Channel(say.upward, lambda message, _: self._hear(seat, message))
        await connected(here, channel)
        seat.open(channel)
        seat.tell(say.Welcome(seat.number, self._options, self._sockets, self.rollout.warm))
        self.rollout.bring(seat)
        if self._draining:
            seat.tell(say.Drain())
        if self._leaving:
            seat.kill()
        await channel.closed.wait()

    def _fell(self, seat: Seat) -> None:
        """Note that there is no process in a seat."""
        seat.shut()
        self.sums.forget(seat.number)
        self._arranged()

    def _arranged(self) -> None:
        """See to it that somebody takes every connection."""
        if not self._leaving:
            self._cover.arrange()
        self._watch.changed()

    # ---- what they say

    def _hear(self, seat: Seat, message: say.Up) -> None:
        """Take a message."""
        if isinstance(message, say.Counts):
            self._count(seat, message)
        elif isinstance(message, say.Pong):
            seat.pulse.answered()
        elif isinstance(message, say.Ask):
            self._answer(seat, message.number)
        else:
            self._note(seat, message)
            self._watch.changed()

    def _note(self, seat: Seat, message: Step) -> None:
        """Note how far a worker has come."""
        if isinstance(message, say.Prepared):
            seat.prepared = max(seat.prepared, message.number)  # one that was given late may be older
        elif isinstance(message, say.Switched):
            seat.switched = message.number
        elif isinstance(message, say.Reported):
            seat.reported = message.number
        elif isinstance(message, say.Reloaded):
            seat.reloaded = message.number
        else:
            seat.serving, seat.fallen = True, False
            self._arranged()
            if self._leaving:
                seat.tell(say.Leave())

    def _count(self, seat: Seat, counts: say.Counts) -> None:
        """Add what a worker counted."""
        if counts.usage is not None:
            self._counters.merge(from_wire(counts.usage))
        self.sums.add(seat.number, {tuple(key): value for key, value in counts.samples})

    def _answer(self, seat: Seat, number: int) -> None:
        """Have a worker get the metrics of all."""
        task = asyncio.get_running_loop().create_task(self._write(seat, seat.channel, number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, seat: Seat, channel: object, number: int) -> None:
        """Gather the counts of all and send the text; a worker that asked and is gone gets none."""
        await self.gather()
        if seat.channel is channel:
            seat.tell(say.Text(number), self._text())


def started(spawn: Spawn) -> tuple[Child, socket.socket]:
    """Return a new process, and the parent's end of its socket pair. Raises OSError."""
    here, there = socket.socketpair()
    with there:
        try:
            return spawn(there), here
        except BaseException:
            here.close()
            raise
