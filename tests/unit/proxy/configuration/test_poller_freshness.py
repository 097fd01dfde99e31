"""The polling loop: what it reports about itself, and polls that are requested."""

from __future__ import annotations

import asyncio

from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import FakeSource, RecordingUpstream, turns
from support.aio import asynchronous, until
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


# ---- a poll that is requested


@asynchronous
async def test_a_requested_poll_is_made_at_once() -> None:
    """The interval starts again. Nothing waits for a request any more when the poller has stopped."""
    source, tasks = HttpSource(RecordingUpstream(FakeSource(ONE, TWO))), asyncio.all_tasks()
    async with running(source=source) as world:
        assert await world.clock.next_sleep() == 5.0
        await world.clock.advance(2)
        source.poll_now()
        assert await world.clock.next_sleep() == 5.0
        assert (world.serves, world.clock.monotonic(), world.clock.sleeping) == (["two"], 2.0, [5.0])
    assert (world.clock.sleeping, asyncio.all_tasks()) == ([], tasks)


@asynchronous
async def test_a_poll_that_is_requested_during_another_is_not_missed() -> None:
    """It follows at once."""
    documents = FakeSource(ONE, TWO)
    documents.gate = asyncio.Event()
    source = HttpSource(RecordingUpstream(documents))
    async with running(source=source) as world:
        await until(lambda: documents.etags)
        source.poll_now()
        documents.gate.set()
        assert [await world.clock.next_sleep() for _ in range(2)] == [5.0, 5.0]
        assert (world.serves, world.clock.monotonic()) == (["two"], 0.0)


@asynchronous
async def test_without_a_request_the_interval_counts() -> None:
    """An upstream is polled like any other source."""
    async with running(source=HttpSource(RecordingUpstream(FakeSource(ONE, TWO)))) as world:
        assert await world.round() == 5.0
        assert world.serves == ["two"]
