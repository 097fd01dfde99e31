"""Finds workers that hang: pings each worker regularly, and kills one that does not answer.

A process that is stopped, or runs custom code without end, keeps its sockets, and the kernel keeps giving it connections. Without
pings its parent would only see that the process still exists (decision 0036).
"""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.slot import WorkerSlot

CHECKS_PER_TIMEOUT = 20
"""The number of checks during the time that a worker may be silent."""
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.05, 1.0
"""The bounds of the seconds between two checks."""
MAX_LATE_INTERVALS = 5
"""A late check counts for at most this many intervals: a suspended machine, for example, delays parent and workers alike."""
START_TIMEOUT_S = 30.0
"""Seconds that a new process has for its first answer: it must load Python and custom code."""


class WorkerHeartbeat:
    """Pings all workers, and kills those that are silent for `timeout_s` seconds. `hangs` counts the killed workers.

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
        """Whether at least one worker takes connections and has been silent for at most half of the timeout."""
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

        The time since the previous check is added only after this test. So an answer that arrived meanwhile is read first.
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
        self._log.error(
            "a worker does not answer and is killed", worker=slot.number, pid=pid, silent_s=round(pulse.silent_s, 1)
        )
        slot.kill()
