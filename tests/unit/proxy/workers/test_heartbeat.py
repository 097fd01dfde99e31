"""Workers that do not answer: who is ended and when, who is not, and what callers would find."""

from __future__ import annotations

import pytest

from flagsvc.proxy.workers import messages as say
from flagsvc.testing import turns
from support.aio import asynchronous
from support.crew_scene import FakeWorker, Hall, hall

TIMEOUT_S = 2.0


async def passed(around: Hall, seconds: float, step: float = 0.2) -> None:
    """Let time pass in looks; whatever workers answer is heard in between."""
    for _ in range(round(seconds / step)):
        await around.clock.advance(step)
        await heard(around)


async def heard(around: Hall) -> None:
    """Wait until every worker that answers has been heard."""
    for slot in around.worker_pool._seats:
        sitting = [worker for worker in around.made if slot.child is worker]
        able = bool(sitting) and not sitting[0].deaf & {say.Ping, say.Welcome}
        await around.until(lambda: not able or not slot.pulse.owing)  # noqa: B023


def deafen(*workers: FakeWorker) -> None:
    """Have workers answer nothing any more."""
    for worker in workers:
        worker.deaf.add(say.Ping)


@asynchronous
async def test_who_is_silent_is_replaced() -> None:
    """In the time given and two looks more, at once, however soon after its start; it is told which, and counted."""
    async with hall(2, timeout_s=TIMEOUT_S) as around:
        await passed(around, 1)
        for number in range(3):
            silent = around.made[-1]
            deafen(silent)
            before = around.clock.monotonic()
            while not silent.killed:
                await passed(around, 0.2)
            assert TIMEOUT_S <= around.clock.monotonic() - before <= TIMEOUT_S + 0.7
            await around.until(lambda: len(around.made) == number + 3 and around.worker_pool.workers == 2)  # noqa: B023
            await passed(around, 1)
        assert (around.worker_pool.hangs, around.worker_pool.restarts) == (3, 3)
        assert not around.made[0].killed and around.made[0].told(say.Adopt), (
            "who waits at its sockets is taken by the other"
        )
        ended = [line for line in around.log.lines if line.event == "a worker does not answer and is ended"]
        assert ended[0].fields == {"worker": 1, "pid": around.made[1].pid, "silent_s": 2.0}


@asynchronous
async def test_who_answers_stays() -> None:
    """For ever, and is not asked again before it has answered."""
    async with hall(2, timeout_s=TIMEOUT_S) as around:
        await passed(around, 60)
        assert around.worker_pool.hangs == 0 and len(around.made) == 2
        deafen(*around.made)
        counts = [len(worker.told(say.Ping)) for worker in around.made]
        await passed(around, 1.5)
        assert [len(worker.told(say.Ping)) - 1 for worker in around.made] == counts


@asynchronous
async def test_our_own_lateness_is_nobodys_silence() -> None:
    """A parent that was held up, as by a machine that was suspended, takes what was answered meanwhile before it ends anybody."""
    async with hall(1, timeout_s=TIMEOUT_S) as around:
        await passed(around, 1)
        [worker] = around.made
        deafen(worker)
        for _ in range(4):  # each is one look that comes a minute late
            around.clock._elapsed += 60
            await around.clock.advance(0)
        assert not worker.killed
        around.worker_pool._seats[0].pulse.silent_s = TIMEOUT_S - 0.1
        around.clock._elapsed += 60
        await around.clock.advance(0)
        worker.channel.send(say.Pong())
        await around.until(lambda: around.worker_pool._seats[0].pulse.silent_s == 0)
        await around.clock.advance(0.2)
        assert not worker.killed and around.worker_pool.hangs == 0  # type: ignore[redundant-expr]


@asynchronous
async def test_who_starts_has_longer() -> None:
    """Its first answer may take half a minute; then it is ended as well."""
    async with hall(1, timeout_s=TIMEOUT_S) as around:
        around.deaf |= {say.Welcome, say.Ping}
        around.made[0].end(1)
        await around.until(lambda: len(around.made) == 2 and around.made[1].heard)
        starting = around.made[1]
        await passed(around, 29)
        assert not starting.killed
        around.deaf.clear()
        await passed(around, 2)
        assert starting.killed
        await around.until(lambda: len(around.made) == 3 and around.worker_pool.workers == 1)  # type: ignore[unreachable]


@asynchronous
async def test_whether_anybody_answers() -> None:
    """While one worker does; one that has been silent for half of its time counts no longer, and counts again once it answers."""
    around = Hall(2, timeout_s=TIMEOUT_S)
    assert not around.worker_pool.answering
    around.worker_pool.start()
    await around.worker_pool.started()
    await passed(around, 1)
    deafen(around.made[0])
    await passed(around, 0.6)
    deafen(around.made[1])
    await passed(around, 0.8)
    assert around.worker_pool.answering
    await passed(around, 0.6)  # type: ignore[unreachable]
    assert not around.worker_pool.answering and around.worker_pool.workers == 2
    around.made[1].channel.send(say.Pong())
    await around.until(lambda: around.worker_pool.answering)
    await around.worker_pool.stop()


@pytest.mark.parametrize("serving", [True, False])
@asynchronous
async def test_without_a_bound_nobody_is_asked(serving: bool) -> None:
    """Whoever takes connections counts."""
    around = Hall(1)
    if serving:
        around.worker_pool.start()
        await around.worker_pool.started()
        await around.clock.advance(100)
        await turns()
        assert not around.made[0].told(say.Ping)
    assert around.worker_pool.answering is serving
    if serving:
        await around.worker_pool.stop()


@asynchronous
async def test_one_that_does_not_even_die() -> None:
    """It is told of once."""
    async with hall(1, timeout_s=TIMEOUT_S) as around:
        await passed(around, 1)
        [worker] = around.made
        deafen(worker)
        worker.kill = lambda: None  # type: ignore[method-assign]
        await passed(around, 10)
        assert around.worker_pool.hangs == 1
        worker.end(-9)
        await around.until(lambda: len(around.made) == 2 and around.worker_pool.workers == 1)
