"""Waiting for one of two things."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.replicas.waits import first_of, happens_within
from flagsvc.testing import FakeClock, turns
from support.aio import asynchronous


@asynchronous
async def test_an_event_in_time() -> None:
    """The event ends the wait, and no sleep is left."""
    clock, event = FakeClock(), asyncio.Event()
    waiting = asyncio.create_task(happens_within(clock, 5.0, event))
    await turns()
    event.set()
    assert await waiting and clock.sleeping == []


@asynchronous
async def test_an_event_that_does_not_happen() -> None:
    """The time is over then."""
    clock, event = FakeClock(), asyncio.Event()
    waiting = asyncio.create_task(happens_within(clock, 5.0, event))
    await turns()
    await clock.advance(5.0)
    assert not await waiting


@pytest.mark.parametrize("seconds", [0.0, -1.0])
@asynchronous
async def test_no_time_at_all(seconds: float) -> None:
    """It is looked, not waited."""
    event = asyncio.Event()
    assert not await happens_within(FakeClock(), seconds, event)
    event.set()
    assert await happens_within(FakeClock(), seconds, event)


@asynchronous
async def test_the_other_one_is_cancelled() -> None:
    """The other task is cancelled, also if the wait itself is cancelled."""
    ended = []

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("never")

    await first_of(asyncio.sleep(0), never())
    assert ended == ["never"]
    waiting = asyncio.create_task(first_of(never(), never()))
    await turns()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(ended) == 3


@asynchronous
async def test_what_one_of_them_raises() -> None:
    """It is raised: taken for an end it would be asked again at once, and for ever."""

    async def fails() -> None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        await first_of(asyncio.Event().wait(), fails())
