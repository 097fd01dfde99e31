"""Background tasks that are restarted when they fail."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.core.background import SupervisedTask, wait_for_first
from flagsvc.testing import FakeClock, RecordingLog, turns


class Body:
    """Fails `faults` times, then waits forever or returns."""

    def __init__(self, faults: int, ends: bool = False) -> None:
        self.faults, self.ends, self.rounds = faults, ends, 0

    async def __call__(self) -> None:
        """One life of the loop."""
        self.rounds += 1
        if self.rounds <= self.faults:
            raise RuntimeError(f"fault {self.rounds}")
        if not self.ends:
            await asyncio.Event().wait()


class Cancelled(Body):
    """Awaits an inner task, which is cancelled in the first `faults` rounds."""

    async def __call__(self) -> None:
        """One life of the loop."""
        self.rounds += 1
        inner = asyncio.ensure_future(asyncio.Event().wait())
        if self.rounds <= self.faults:
            asyncio.get_running_loop().call_soon(inner.cancel)
        await inner


@pytest.mark.parametrize(("kind", "fault"), [(Body, "RuntimeError"), (Cancelled, "CancelledError")])
async def test_a_fault_costs_one_round_and_is_counted(kind: type[Body], fault: str) -> None:
    """The loop restarts after a pause that grows to at most ten seconds. Each restart is counted and logged."""
    clock, log, body = FakeClock(), RecordingLog(), kind(faults=6)
    loop = SupervisedTask("polling", body, clock=clock, log=log, draw=lambda: 0.5)
    loop.start()
    pauses = []
    for _ in range(6):
        pauses.append(await clock.next_sleep())
        await clock.advance(pauses[-1])
    assert (loop.restarts, body.rounds, loop.is_running) == (6, 7, True)
    assert pauses == sorted(pauses) and pauses[0] < pauses[-1] <= 10
    assert log.at("error") == ["polling failed and starts again"] * 6
    assert all(str(line.fields["error"]).startswith(f"{fault} at ") for line in log.lines)
    assert "fault 1" not in str(log.lines)
    await loop.stop()
    assert not loop.is_running


async def test_a_loop_that_ends_by_itself_is_not_started_again() -> None:
    """A body that returns is not started again."""
    body = Body(faults=0, ends=True)
    loop = SupervisedTask("x", body, clock=FakeClock(), log=RecordingLog(), draw=lambda: 0.5)
    loop.start()
    await turns()
    assert (loop.is_running, body.rounds, loop.restarts) == (False, 1, 0)
    await loop.stop()


async def test_starting_twice_is_starting_once_and_stopping_before_starting_is_nothing() -> None:
    """A second `start` and an early `stop` have no effect. Both happen in a mounted application."""
    body = Body(faults=0)
    loop = SupervisedTask("x", body, clock=FakeClock(), log=RecordingLog(), draw=lambda: 0.5)
    await loop.stop()
    loop.start()
    loop.start()
    await turns()
    assert body.rounds == 1
    await loop.stop()


async def test_a_loop_that_is_cancelled_itself_ends() -> None:
    """A cancelled task ends and is not restarted, because an event loop that shuts down waits for all tasks."""
    body = Body(faults=0)
    loop = SupervisedTask("x", body, clock=FakeClock(), log=RecordingLog(), draw=lambda: 0.5)
    before = asyncio.all_tasks()
    loop.start()
    await turns()
    (task,) = asyncio.all_tasks() - before
    task.cancel()
    await asyncio.wait([task])
    assert (loop.is_running, loop.restarts, body.rounds) == (False, 0, 1)


async def test_a_fault_on_the_way_out_does_not_keep_the_loop_alive() -> None:
    """`stop` returns even if the body raises another exception when it is cancelled."""
    clock, log = FakeClock(), RecordingLog()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("a bug in the cleaning up")

    loop = SupervisedTask("x", stubborn, clock=clock, log=log, draw=lambda: 0.5)
    loop.start()
    await turns()
    await loop.stop()
    assert (loop.is_running, loop.restarts, clock.sleeping) == (False, 0, [])


async def test_a_time_limit_inside_is_no_end() -> None:
    """A timeout inside the body is a fault and restarts it: asyncio.timeout cancels the task and then uncancels it."""
    clock, done = FakeClock(), asyncio.Event()

    async def limited() -> None:
        if loop.restarts:
            done.set()
            return
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    loop = SupervisedTask("x", limited, clock=clock, log=RecordingLog(), draw=lambda: 0.5)
    loop.start()
    await clock.advance(await clock.next_sleep())
    await done.wait()
    await loop.stop()
    assert loop.restarts == 1


async def test_waiting_for_the_first() -> None:
    """When a task is done, also by an error, the other tasks have been cancelled. A cancelled wait leaves no task behind."""
    ended: list[str] = []

    async def wait(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def fail() -> None:
        raise RuntimeError("some-person")

    await wait_for_first(turns(), wait("a"))
    await wait_for_first(wait("b"), fail())
    assert ended == ["a", "b"]
    waiting = asyncio.ensure_future(wait_for_first(wait("c"), wait("d")))
    await turns()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled() and ended[2:] == ["c", "d"]
