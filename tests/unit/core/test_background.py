"""Background tasks that are restarted when they fail, and the delay after a failure."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flagsvc.core.background import (
    RETRY_AFTER_CEILING_S,
    SupervisedTask,
    delay_after_failure,
    delay_while_cold,
    delay_while_refused,
    longest_delay,
    wait_for_first,
)
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


DRAWS = st.floats(0, 1, exclude_max=True)
INTERVALS = st.floats(0.001, 10_000)
FAILURES = st.integers(1, 10_000)
LARGE_DRAW = 0.999
"""Nearly the largest draw."""
LARGE_SHARE = 0.5 + LARGE_DRAW / 2
"""The share of the full delay that this draw gives."""


@given(FAILURES, DRAWS, INTERVALS)
def test_a_back_off_is_never_shorter_than_the_interval_and_never_over_the_ceiling(
    failures: int, draw: float, interval: float
) -> None:
    """For every draw the delay is at least the interval and at most the ceiling."""
    assert interval <= delay_after_failure(failures, draw, interval) <= longest_delay(interval)


@given(FAILURES, DRAWS, INTERVALS, st.floats(0, 1e12))
def test_retry_after_is_obeyed_up_to_its_ceiling(failures: int, draw: float, interval: float, wish: float) -> None:
    """The wait is at least what the server requests, up to an hour."""
    delay = delay_after_failure(failures, draw, interval, retry_after=wish)
    assert delay >= min(wish, RETRY_AFTER_CEILING_S)
    assert delay >= delay_after_failure(failures, draw, interval)
    assert delay <= max(longest_delay(interval), min(wish, RETRY_AFTER_CEILING_S) + interval)


@given(FAILURES, INTERVALS)
@example(1, 299.9)
@example(1, LARGE_SHARE * 300)
def test_the_draw_spreads_instances(failures: int, interval: float) -> None:
    """Two instances with different draws wait differently, unless the interval is close to `longest_delay`."""
    early, late = (delay_after_failure(failures, draw, interval) for draw in (0.0, LARGE_DRAW))
    assert early < late or interval >= LARGE_SHARE * longest_delay(interval)


def test_the_wait_doubles() -> None:
    """With the largest draw, the waits are two intervals, four, eight, then the longest delay of ten, or a given ceiling."""
    delays = [delay_after_failure(failures, 1.0, 5.0) for failures in (1, 2, 3, 4, 40)]
    assert delays == [10.0, 20.0, 40.0, 50.0, 50.0]
    assert delay_after_failure(30, 1.0, 0.5, ceiling=2.0) == 2.0


@pytest.mark.parametrize(("interval", "most"), [(0.5, 5.0), (5.0, 50.0), (60.0, 300.0), (3600.0, 3600.0)])
def test_the_ceiling_follows_the_interval(interval: float, most: float) -> None:
    """The ceiling is ten intervals, at most five minutes, but never below one interval."""
    assert longest_delay(interval) == most


@given(DRAWS, INTERVALS)
def test_a_refused_token_is_retried_slowly(draw: float, interval: float) -> None:
    """From the first refusal, the wait is at least half of `longest_delay`."""
    assert longest_delay(interval) / 2 <= delay_while_refused(draw, interval) <= longest_delay(interval)
    assert delay_while_refused(draw, interval, retry_after=3000) >= 3000


@given(FAILURES, DRAWS, INTERVALS, st.none() | st.floats(0, 1e12))
def test_a_cold_proxy_asks_within_seconds(failures: int, draw: float, interval: float, wish: float | None) -> None:
    """This holds for any number of failures and any interval. Only a Retry-After can raise it, to about a minute."""
    delay = delay_while_cold(failures, draw, interval, retry_after=wish)
    assert min(interval, 1.0) <= delay <= 5.0 or (wish is not None and delay <= 61.0)
    assert wish is None or delay >= min(wish, 60.0)


def test_a_cold_proxy_begins_with_a_second() -> None:
    """The delay starts at one to two seconds and ends at five at most. A short interval has shorter delays."""
    assert [delay_while_cold(failures, 1.0, 30.0) for failures in (1, 2, 3, 40)] == [2.0, 4.0, 5.0, 5.0]
    assert [delay_while_cold(failures, 0.0, 30.0) for failures in (1, 2, 3, 40)] == [1.0, 2.0, 2.5, 2.5]
    assert [delay_while_cold(failures, 1.0, 0.1) for failures in (1, 40)] == [0.2, 1.0]
    assert delay_while_cold(40, 1.0, 0.5, ceiling=2.0) == 2.0
