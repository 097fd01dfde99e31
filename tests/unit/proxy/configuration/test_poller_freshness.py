"""The polling loop: what it reports about itself, and sources that announce news."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.configuration.ports import Announcing
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import Answer, FakeSource, turns
from support.aio import asynchronous
from support.polling import DOWN, EMPTY, ONE, REFUSED, TWO, running, stored

# ---- what is told


@asynchronous
async def test_every_poll_is_counted_by_what_it_brought() -> None:
    """Failures in a row are counted too, until a poll goes well."""
    script = (ONE, ONE, Fetched(bytes(bytearray(ONE))), DOWN, REFUSED, b"{", EMPTY, TWO, DOWN)
    async with running(*script) as world:
        failures = []
        for _ in script:
            await world.round()
            failures.append(world.holder.failures)
        # each round ends when the next poll is over
        assert failures == [0, 0, 1, 2, 3, 0, 0, 1, 2]
        counts = {"fetched": 2, "not-modified": 1, "same": 1, "failed": 3, "refused": 1, "unusable": 1, "empty": 1}
        assert world.holder.event_counts == counts


@asynchronous
async def test_the_last_check_is_the_last_that_went_well() -> None:
    """An answer that cannot be used is no check."""
    async with running(ONE, ONE, DOWN, b"{", REFUSED, ONE) as world:
        checked = []
        for _ in range(6):
            await world.clock.next_sleep()
            checked.append(world.holder.checked_at)
            await world.clock.advance(max(world.clock.sleeping))
        assert checked == [0.0, 5.0, 5.0, 5.0, 5.0, world.clock.monotonic() - 5.0]


@asynchronous
async def test_nothing_was_checked_by_reading_what_is_stored() -> None:
    """Storage and bootstrap do not show when the upstream confirmed a document, and do not end a series of failures."""
    bootstrap = FakeSource(TWO)
    bootstrap.gate = asyncio.Event()
    async with running(DOWN, store=stored(ONE, None), bootstrap=bootstrap) as world:
        await world.round()
        assert (world.serves, world.holder.checked_at, world.holder.failures) == (["one"], None, 2)
        bootstrap.gate.set()
        await turns()
        assert (world.serves, world.holder.checked_at, world.holder.failures) == (["two"], None, 2)
        assert sum(world.holder.event_counts.values()) == 2


# ---- sources that tell by themselves


class Radio(FakeSource):
    """A source with news: `wave` is set when there are any, and `faults` are raised instead of waiting."""

    def __init__(self, *script: Answer) -> None:
        super().__init__(*script)
        self.wave = asyncio.Event()
        self.faults: list[BaseException] = []
        self.listeners = 0

    async def news(self) -> None:
        """Return when there are any."""
        if self.faults:
            raise self.faults.pop(0)
        self.listeners += 1
        try:
            await self.wave.wait()
            self.wave.clear()
        finally:
            self.listeners -= 1


@asynchronous
async def test_news_are_fetched_at_once() -> None:
    """News are fetched at once, and the interval starts again. Only one task waits for news."""
    source = Radio(ONE, TWO)
    assert isinstance(source, Announcing)
    async with running(source=source) as world:
        assert await world.clock.next_sleep() == 5.0
        await world.clock.advance(2)
        source.wave.set()
        assert await world.clock.next_sleep() == 5.0
        assert (world.serves, world.clock.monotonic(), world.clock.sleeping) == (["two"], 2.0, [5.0])
        await turns()
        assert source.listeners == 1
    assert (source.listeners, world.clock.sleeping) == (0, [])


@asynchronous
async def test_news_that_came_meanwhile_are_not_missed() -> None:
    """They are fetched with the next round, which follows at once."""
    source = Radio(ONE, TWO)
    source.wave.set()
    async with running(source=source) as world:
        assert [await world.clock.next_sleep() for _ in range(2)] == [5.0, 5.0]
        assert (world.serves, world.clock.monotonic()) == (["two"], 0.0)


@asynchronous
async def test_without_news_the_interval_counts() -> None:
    """A source that is silent, or broken off, is asked like any other."""
    async with running(source=Radio(ONE, TWO)) as world:
        assert await world.round() == 5.0
        assert world.serves == ["two"]


@pytest.mark.parametrize("fault", [OSError("gone"), RuntimeError("bug"), asyncio.CancelledError()])
@asynchronous
async def test_a_source_that_fails_to_tell_is_asked_at_the_usual_pace(fault: BaseException) -> None:
    """It costs a line in the log and neither a round nor the loop; the next time its news count again."""
    source = Radio(ONE, TWO, ONE)
    source.faults = [fault]
    async with running(source=source) as world:
        assert await world.clock.next_sleep() == 5.0
        await turns()
        assert (world.clock.sleeping, world.log.at("warn")) == (
            [5.0],
            ["waiting for news of the configuration failed"],
        )
        await world.clock.advance(5)
        assert (world.serves, world.poller.restarts) == (["two"], 0)
        source.wave.set()
        await turns()
        assert (world.serves, world.clock.monotonic()) == (["one"], 5.0)
