"""Finds workers that hang: each is asked over and over whether its loop still turns, and one that is silent is ended.

A process that is stopped, or runs custom code without end, keeps its sockets, and the kernel goes on giving it connections. That it
has not ended is all that its parent would see otherwise (decision 0036).
"""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.slot import WorkerSlot

LOOKS = 20
"""Looks during the time that a worker may be silent,"""
SHORTEST_S, LONGEST_S = 0.05, 1.0
"""and the bounds of the seconds between two of them."""
LATE = 5
"""A look that comes late counts for no more than this many: what held us up, like a machine that was suspended, held up all."""
START_S = 30.0
"""Seconds until the first answer of a process, which has Python and custom code to load."""


class Heartbeat:
    """Asks all workers, and ends those that are silent for `timeout_s` seconds; 0 asks nobody. `hangs` counts the ended.

    Whoever sits there next is the crew's business.
    """

    def __init__(self, slots: Sequence[WorkerSlot], *, timeout_s: float, clock: Clock, log: Logger) -> None:
        self.hangs = 0
        self.timeout_s = timeout_s
        self._seats = slots
        self._clock = clock
        self._log = log
        self._look_s = min(max(timeout_s / LOOKS, SHORTEST_S), LONGEST_S)

    @property
    def answering(self) -> bool:
        """Whether a worker takes connections that has not been silent for half of its time."""
        return any(slot.serving and 2 * slot.pulse.silent_s <= self.timeout_s for slot in self._seats)

    async def run(self) -> None:
        """Look after the workers until cancelled."""
        before = self._clock.monotonic()
        while True:
            await self._clock.sleep(self._look_s)
            now = self._clock.monotonic()
            for slot in self._seats:
                if slot.channel is not None:
                    self._look(slot, min(now - before, LATE * self._look_s))
            before = now

    def _look(self, slot: WorkerSlot, seconds: float) -> None:
        """Ask a worker, or end it.

        It is ended for how silent it was at the look before: an answer that came while we were held up is read by now.
        """
        pulse = slot.pulse
        if pulse.ended:
            return
        if pulse.overdue(self.timeout_s, START_S):
            self._end(slot)
        elif pulse.passed(seconds):
            slot.tell(say.Ping())

    def _end(self, slot: WorkerSlot) -> None:
        pulse, pid = slot.pulse, None if slot.child is None else slot.child.pid
        pulse.ended = True
        self.hangs += 1
        self._log.error(
            "a worker does not answer and is ended", worker=slot.number, pid=pid, silent_s=round(pulse.silent_s, 1)
        )
        slot.kill()
