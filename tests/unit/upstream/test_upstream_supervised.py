"""A loop that cannot end unseen."""

from __future__ import annotations

import asyncio

from aio import asynchronous
from flagsvc.testing import FakeClock, RecordingLog, turns
from flagsvc.upstream.supervised import Supervised


class Body:
    """Fails as often as it is told, then waits for ever or ends."""

    def __init__(self, faults: int, ends: bool = False) -> None:
        self.faults, self.ends, self.rounds = faults, ends, 0

    async def __call__(self) -> None:
        """One life of the loop."""
        self.rounds += 1
        if self.rounds <= self.faults:
            raise RuntimeError(f"fault {self.rounds}")
        if not self.ends:
            await asyncio.Event().wait()


@asynchronous
async def test_a_fault_costs_one_round_and_is_counted() -> None:
    """The loop starts again after a pause that grows and stays bounded, and the log says so each time."""
    clock, log, body = FakeClock(), RecordingLog(), Body(faults=6)
    loop = Supervised("polling", body, clock=clock, log=log, draw=lambda: 0.5)
    loop.start()
    pauses = []
    for _ in range(6):
        pauses.append(await clock.next_sleep())
        await clock.advance(pauses[-1])
    assert (loop.restarts, body.rounds, loop.running) == (6, 7, True)
    assert pauses == sorted(pauses) and pauses[0] < pauses[-1] <= 10
    assert log.at("error") == ["polling failed and starts again"] * 6
    assert all(str(line.fields["error"]).startswith("RuntimeError at ") for line in log.lines)
    assert "fault 1" not in str(log.lines)
    await loop.stop()
    assert not loop.running


@asynchronous
async def test_a_loop_that_ends_by_itself_is_not_started_again() -> None:
    """Ending is a decision of the loop; only a fault is not."""
    body = Body(faults=0, ends=True)
    loop = Supervised("x", body, clock=FakeClock(), log=RecordingLog(), draw=lambda: 0.5)
    loop.start()
    await turns()
    assert (loop.running, body.rounds, loop.restarts) == (False, 1, 0)
    await loop.stop()


@asynchronous
async def test_starting_twice_is_starting_once_and_stopping_before_starting_is_nothing() -> None:
    """Both may happen in an application that is mounted in another."""
    body = Body(faults=0)
    loop = Supervised("x", body, clock=FakeClock(), log=RecordingLog(), draw=lambda: 0.5)
    await loop.stop()
    loop.start()
    loop.start()
    await turns()
    assert body.rounds == 1
    await loop.stop()
