"""Work that gets so much time and no more."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from flagsvc.http import deadlines
from flagsvc.http.deadlines import CancelledInsideError, CrowdedError, Deadline, OverdueError, run_until_gone
from support.aio import until

SOON_S = 0.02
LONG_S = 60.0


class Hanging:
    """Work that hangs. It counts its starts and cancellations. A `stubborn` one continues until it is released."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.begun = 0
        self.cancelled = 0
        self.released = asyncio.Event()
        self.stubborn = stubborn

    async def run(self) -> str:
        self.begun += 1
        while True:
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                if not self.stubborn:
                    raise
            else:
                return "late"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give cancelled work little time to end."""
    monkeypatch.setattr(deadlines, "CANCEL_S", SOON_S)


async def gives(value: str) -> str:
    """Return a value."""
    await asyncio.sleep(0)
    return value


FAILS = AsyncMock(side_effect=KeyError("broken"))
LEAVES = AsyncMock(return_value=True)
"""A caller that has gone."""


async def test_work_that_ends_in_time() -> None:
    """Its result and its error come through, and nothing is left."""
    before = asyncio.all_tasks()
    deadline = Deadline(LONG_S)
    assert await deadline.wait_for(gives("a"), Mock()) == "a"
    with pytest.raises(KeyError):
        await deadline.wait_for(FAILS(), Mock())
    assert asyncio.all_tasks() == before


async def test_work_that_takes_too_long() -> None:
    """The work is cancelled, and the caller gets the error at once. Work that then ends is not reported."""
    before = asyncio.all_tasks()
    work, told, deadline = Hanging(), Mock(), Deadline(SOON_S)
    with pytest.raises(OverdueError):
        await deadline.wait_for(work.run(), told)
    await until(lambda: asyncio.all_tasks() == before)
    assert (work.cancelled, told.call_count, deadline.stuck) == (1, 0, 0)


@pytest.mark.parametrize("gone", [False, True])
async def test_work_that_does_not_let_itself_be_cancelled(gone: bool, impatient: None) -> None:
    """The caller continues. Work that still runs is reported and counted until it ends."""
    before = asyncio.all_tasks()
    work, told, deadline = Hanging(stubborn=True), Mock(), Deadline(LONG_S if gone else SOON_S)
    waiting = asyncio.create_task(deadline.wait_for(work.run(), told))
    await until(lambda: work.begun == 1)
    if gone:
        waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled() if gone else isinstance(waiting.exception(), OverdueError)
    await until(lambda: deadline.stuck == 1)
    assert told.call_count == 1 and work.cancelled == 1
    work.released.set()
    await until(lambda: deadline.stuck == 0)
    assert asyncio.all_tasks() == before


async def test_too_much_that_goes_on(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is begun until some of it ends."""
    monkeypatch.setattr(deadlines, "MAX_STUCK", 2)
    works, deadline = [Hanging(stubborn=True) for _ in range(2)], Deadline(SOON_S)
    for work in works:
        with pytest.raises(OverdueError):
            await deadline.wait_for(work.run(), Mock())
    await until(lambda: deadline.stuck == 2)
    with pytest.raises(CrowdedError):
        deadline.check()
    works[0].released.set()
    await until(lambda: deadline.stuck == 1)
    deadline.check()
    works[1].released.set()


async def test_work_that_is_cancelled_from_inside() -> None:
    """The work has failed, but the caller is not cancelled."""
    with pytest.raises(CancelledInsideError):
        await Deadline(LONG_S).wait_for(AsyncMock(side_effect=asyncio.CancelledError)(), Mock())


async def stays() -> bool:
    """Never be gone."""
    await asyncio.Event().wait()
    return True


@pytest.mark.parametrize(
    "gone", [stays, AsyncMock(return_value=False), AsyncMock(side_effect=IndexError)], ids=["stays", "unknown", "raises"]
)
async def test_a_present_caller_gets_the_result(gone: Callable[[], Awaitable[bool]]) -> None:
    """This also holds if it is unknown whether the caller has gone. No task remains, and the loop logs nothing."""
    before = asyncio.all_tasks()
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    assert await run_until_gone(gives("a"), gone) == "a"
    with pytest.raises(KeyError):
        await run_until_gone(FAILS(), gone)
    await until(lambda: asyncio.all_tasks() == before)
    gc.collect()
    assert complaints == []


async def test_work_for_a_caller_that_has_gone() -> None:
    """The work is cancelled, also if the waiting task is cancelled. A future that somebody else has taken over, such as a thread's,
    is waited for even if the caller has gone."""
    before = asyncio.all_tasks()
    work = Hanging()
    assert await run_until_gone(work.run(), LEAVES) is None
    await until(lambda: work.cancelled == 1)
    waiting = asyncio.create_task(run_until_gone(work.run(), stays))
    await until(lambda: work.begun == 2)
    waiting.cancel()
    await asyncio.wait([waiting])
    await until(lambda: asyncio.all_tasks() == before)
    assert waiting.cancelled() and work.cancelled == 2
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(SOON_S, future.set_result, "done")
    assert await run_until_gone(future, LEAVES) == "done"
