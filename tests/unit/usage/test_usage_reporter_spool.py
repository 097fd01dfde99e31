"""What becomes of counts that cannot be sent: in storage, in other lives, in other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from usage_scene import DOWN, HangingUpstream, World, running, tally

from aio import asynchronous
from flagsvc.errors import UpstreamError
from flagsvc.testing import FakeClock, MemoryShelf, RecordingUpstream, turns
from flagsvc.usage import reporter
from flagsvc.usage.record import Record, unpack
from flagsvc.usage.spool import ABANDONED

INTERVAL_S = 30.0


def stored(shelf: MemoryShelf) -> list[Record]:
    """Return the records on a shelf."""
    return [unpack(data) for data in shelf.data.values()]


def kept(shelf: MemoryShelf) -> dict[str, tuple[int, int]]:
    """Return the sums of what is on a shelf, (yes, no) by toggle."""
    found: dict[str, tuple[int, int]] = {}
    for record in stored(shelf):
        for bucket in record.buckets():
            for name, counted in bucket.toggles.items():
                yes, no = found.get(name, (0, 0))
                found[name] = (yes + counted.yes, no + counted.no)
    return found


@asynchronous
async def test_what_the_last_post_could_not_send_is_sent_after_the_restart() -> None:
    """It is left in storage, and the next process sends it, apart from its own counts: it is of another time."""
    shelf = MemoryShelf()
    async with running(shelf=shelf) as world:
        world.usage.count("a", True)
        world.upstream.faults = [DOWN]
    assert kept(shelf) == {"a": (1, 0)} and [record.left for record in stored(shelf)] == [True]
    assert "lost" not in str(world.log.lines)
    async with running(shelf=shelf, clock=FakeClock(2_000_000_000.0)) as world:
        world.usage.count("b", False)
        await world.interval()
        assert world.sent == [{"b": tally(0, 1)}, {"a": tally(1, 0)}]
        assert world.upstream.metrics[1]["bucket"]["start"] == "2025-06-15T15:06:40.000Z"  # type: ignore[index]
        assert shelf.data == {}


@asynchronous
async def test_without_anything_to_send_what_others_left_is_sent_all_the_same() -> None:
    """A proxy that nobody asks sends it too."""
    shelf = MemoryShelf()
    for _ in range(3):
        async with running(shelf=shelf) as world:
            world.usage.count("a", True)
            world.upstream.faults = [DOWN]
    assert len(shelf.data) == 3
    async with running(shelf=shelf) as world:
        await world.interval()
        assert world.sent == [{"a": tally(1, 0)}] * 3 and shelf.data == {}


@asynchronous
async def test_nothing_is_stored_while_all_is_well() -> None:
    """Storage is for what cannot be sent."""
    shelf = MemoryShelf()
    async with running(shelf=shelf) as world:
        for _ in range(3):
            world.usage.count("a", True)
            await world.interval()
            assert shelf.data == {}
    assert shelf.data == {} and len(world.sent) == 3


@asynchronous
async def test_an_outage_is_kept_in_storage_interval_by_interval() -> None:
    """A kill loses one interval at most, also where the next attempt is long after; afterwards nothing stays behind."""
    shelf = MemoryShelf()
    async with running(shelf=shelf) as world:
        world.upstream.faults = [DOWN] * 4
        for number in range(1, 15):
            world.usage.count("a", True)
            assert await world.interval() <= INTERVAL_S
            if world.upstream.faults:
                assert kept(shelf) == {"a": (number, 0)}
        assert len(world.upstream.attempts) < 10, "attempts were further apart than writes"
        assert sum(toggles["a"]["yes"] for toggles in world.sent) == 14
        assert shelf.data == {}


@asynchronous
async def test_a_killed_process_is_survived_by_its_counts() -> None:
    """Another one with the same storage sends them once, after a while in which the killed one has not written."""
    shelf = MemoryShelf()
    killed = World(shelf=shelf)
    killed.upstream.faults = [DOWN]
    killed.usage.count("a", True)
    await killed.reporter._send()
    async with running(shelf=shelf) as world, running(shelf=shelf) as other:
        for _ in range(ABANDONED + 2):
            await world.interval()
            await other.interval()
        assert [*world.sent, *other.sent] == [{"a": tally(1, 0)}] and shelf.data == {}


@asynchronous
async def test_the_living_keep_what_is_theirs() -> None:
    """During an outage that only one of two processes sees, the other does not send its counts."""
    shelf = MemoryShelf()
    async with running(shelf=shelf) as cut_off, running(shelf=shelf) as world:
        cut_off.upstream.faults = [DOWN] * 5
        for _ in range(20):
            cut_off.usage.count("a", True)
            world.usage.count("b", True)
            await cut_off.interval()
            await world.interval()
    assert {name for toggles in world.sent for name in toggles} == {"b"}
    assert sum(toggles["a"]["yes"] for toggles in cut_off.sent) == 20
    assert shelf.data == {}


class Recalling(RecordingUpstream):
    """Notes what is in storage whenever it is asked to take something; takes so many posts and fails then."""

    def __init__(self, shelf: MemoryShelf, takes: int) -> None:
        super().__init__()
        self.shelf = shelf
        self.takes = takes
        self.seen: list[dict[str, tuple[int, int]]] = []

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Note, and take or fail."""
        self.seen.append(kept(self.shelf))
        self.takes -= 1
        if self.takes < 0:
            self.faults = [DOWN]
        await super().send_metrics(payload)


@asynchronous
async def test_what_was_answered_is_out_of_storage_before_the_next_post() -> None:
    """Of a bucket in several posts each is taken out as soon as it is known to have arrived: a kill then sends none of it twice."""
    shelf = MemoryShelf()
    upstream = Recalling(shelf, -1)
    async with running(shelf=shelf, upstream=upstream, batch=1) as world:
        world.usage.count("a", True)
        world.usage.count("b", True)
        await world.interval()
        assert kept(shelf) == {"a": (1, 0), "b": (1, 0)}
        upstream.seen.clear()
        upstream.takes = 1
        await world.interval()
        assert upstream.seen == [{"a": (1, 0), "b": (1, 0)}, {"b": (1, 0)}]
        assert kept(shelf) == {"b": (1, 0)}
    assert kept(shelf) == {"b": (1, 0)}


@asynchronous
async def test_what_will_never_be_taken_is_out_of_storage_too() -> None:
    """And counted as refused."""
    shelf = MemoryShelf()
    async with running(shelf=shelf) as world:
        world.upstream.faults = [DOWN, UpstreamError("unexpected", "x", status=400)]
        world.usage.count("a", True)
        await world.interval()
        assert len(shelf.data) == 1
        await world.interval()
        assert (world.usage.refused, world.sent) == (1, [])
    assert shelf.data == {}


@asynchronous
async def test_an_ambiguous_failure_sends_again_and_once_more_after_a_kill() -> None:
    """Who does not know whether counts arrived sends them again (decision 0030): what is on its way is in storage."""
    shelf = MemoryShelf()
    upstream = HangingUpstream()
    upstream.gate.set()
    async with running(shelf=shelf, upstream=upstream) as world:
        world.usage.count("a", True)
        upstream.faults = [DOWN]
        await world.interval()
        upstream.gate.clear()
        await world.interval()
        assert kept(shelf) == {"a": (1, 0)}
        upstream.gate.set()
        await turns()
        assert shelf.data == {} and world.sent == [{"a": tally(1, 0)}]


@asynchronous
async def test_what_was_taken_over_is_in_storage_until_it_is_sent() -> None:
    """A process that has taken over another's counts and cannot send them keeps them as its own, and leaves them in turn."""
    shelf = MemoryShelf()
    async with running(shelf=shelf) as world:
        world.usage.count("a", True)
        world.upstream.faults = [DOWN]
    async with running(shelf=shelf) as world:
        world.usage.count("b", True)
        await world.interval()
        world.upstream.faults = [DOWN] * 3
    assert world.sent == [{"b": tally(1, 0)}, {"a": tally(1, 0)}]
    async with running(shelf=shelf) as world:
        world.usage.count("a", True)
        world.upstream.faults = [DOWN]
    async with running(shelf=shelf) as world:
        world.upstream.faults = [DOWN] * 2
        await world.interval()
        world.usage.count("a", False)
        [record] = stored(shelf)
        assert not record.left and kept(shelf) == {"a": (1, 0)}
    assert [record.left for record in stored(shelf)] == [True]
    assert [list(bucket.toggles) for bucket in stored(shelf)[0].buckets()] == [["a"], ["a"]]
    assert kept(shelf) == {"a": (1, 1)}


@asynchronous
async def test_what_was_taken_over_is_in_storage_while_it_is_sent() -> None:
    """A process that is killed while the upstream takes its time with another's counts has them in storage as its own."""
    shelf, upstream = MemoryShelf(), HangingUpstream()
    async with running(shelf=shelf) as world:
        world.usage.count("a", True)
        world.upstream.faults = [DOWN]
    async with running(shelf=shelf, upstream=upstream) as world:
        await world.interval()
        assert [record.left for record in stored(shelf)] == [False] and kept(shelf) == {"a": (1, 0)}
        upstream.gate.set()
        await turns()
        assert shelf.data == {} and world.sent == [{"a": tally(1, 0)}]


@asynchronous
async def test_the_shutdown_looks_for_nothing() -> None:
    """What others have left is for those who stay."""
    shelf = MemoryShelf()
    async with running(shelf=shelf) as world:
        world.usage.count("a", True)
        world.upstream.faults = [DOWN]
    async with running(shelf=shelf) as world:
        pass
    assert world.sent == [] and len(shelf.data) == 1


@asynchronous
async def test_an_upstream_that_hangs_at_the_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not leave in time is left in storage."""
    monkeypatch.setattr(reporter, "LAST_SEND_S", 0.01)
    shelf = MemoryShelf()
    async with running(shelf=shelf, upstream=HangingUpstream()) as world:
        world.usage.count("a", True)
        await world.interval()
        world.usage.count("b", True)
    assert kept(shelf) == {"a": (1, 0), "b": (1, 0)} and "lost" not in str(world.log.lines)


@asynchronous
async def test_where_nothing_can_be_stored_it_is_said_what_is_lost() -> None:
    """How many counters; sending goes on as if there were no storage."""
    shelf = MemoryShelf()
    shelf.fault = OSError("full")
    async with running(shelf=shelf) as world:
        world.upstream.faults = [DOWN]
        world.usage.count("a", True)
        await world.interval()
        await world.interval()
        assert world.sent == [{"a": tally(1, 0)}]
        world.usage.count("b", True)
        world.upstream.faults = [DOWN]
    assert world.log.lines[-1].fields == {"entries": 1} and "lost" in world.log.lines[-1].event


@asynchronous
async def test_no_interval_no_storage() -> None:
    """With metricsInterval 0 nothing is sent, stored or looked for."""
    shelf = MemoryShelf()
    shelf.data["left"] = b"anything"
    async with running(shelf=shelf, interval_ms=0) as world:
        world.usage.count("a", True)
    assert shelf.data == {"left": b"anything"} and world.log.lines == []


@asynchronous
async def test_a_cancelled_post_is_in_storage() -> None:
    """An event loop that ends cancels every task; what was on its way is left for the next life."""
    shelf, upstream = MemoryShelf(), HangingUpstream()
    async with running(shelf=shelf, upstream=upstream) as world:
        world.usage.count("a", True)
        before: set[asyncio.Task[Any]] = asyncio.all_tasks()
        await world.interval()
        for task in asyncio.all_tasks() - before:
            task.cancel()
        upstream.gate.set()
        upstream.faults = [DOWN]
    assert kept(shelf) == {"a": (1, 0)}
