"""What becomes of counts that cannot be sent: in storage, in other lives, in other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.usage import reporter
from flagsvc.proxy.usage.unsent import UnsentRecord, unpack
from flagsvc.testing import MemoryRecordStore, RecordingUpstream, turns
from unit.proxy.usage.usage_scene import DOWN, HangingUpstream, running, tally

INTERVAL_S = 30.0


def stored(record_store: MemoryRecordStore) -> list[UnsentRecord]:
    """Return the records on a shelf."""
    return [unpack(data) for data in record_store.data.values()]


def kept(record_store: MemoryRecordStore) -> dict[str, tuple[int, int]]:
    """Return the sums of the stored counts, (yes, no) by toggle."""
    found: dict[str, tuple[int, int]] = {}
    for record in stored(record_store):
        for bucket in record.buckets():
            for name, counted in bucket.toggles.items():
                yes, no = found.get(name, (0, 0))
                found[name] = (yes + counted.yes, no + counted.no)
    return found


async def left() -> MemoryRecordStore:
    """Return the storage of a process that has ended and could send nothing."""
    record_store = MemoryRecordStore()
    async with running(record_store=record_store) as world:
        world.usage.count("a", True)
        world.upstream.faults = [DOWN]
    assert "lost" not in str(world.log.lines)
    return record_store


async def test_nothing_is_stored_while_all_is_well() -> None:
    """Without failures nothing is stored."""
    record_store = MemoryRecordStore()
    async with running(record_store=record_store) as world:
        for _ in range(3):
            world.usage.count("a", True)
            await world.interval()
            assert record_store.data == {}
    assert record_store.data == {} and len(world.sent) == 3


async def test_an_outage_is_kept_in_storage_interval_by_interval() -> None:
    """A kill loses one interval at most, also if the next attempt is much later. Afterwards nothing remains stored."""
    record_store = MemoryRecordStore()
    async with running(record_store=record_store) as world:
        world.upstream.faults = [DOWN] * 4
        for number in range(1, 15):
            world.usage.count("a", True)
            assert await world.interval() <= INTERVAL_S
            if world.upstream.faults:
                assert kept(record_store) == {"a": (number, 0)}
        assert len(world.upstream.attempts) < 10, "attempts were further apart than writes"
        assert sum(toggles["a"]["yes"] for toggles in world.sent) == 14
        assert record_store.data == {}


class Recalling(RecordingUpstream):
    """Records what is stored at each post. Fails twice after each post that it takes."""

    def __init__(self, record_store: MemoryRecordStore) -> None:
        super().__init__()
        self.record_store = record_store
        self.seen: list[dict[str, tuple[int, int]]] = []

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Note, and take or fail."""
        self.seen.append(kept(self.record_store))
        await super().send_metrics(payload)
        self.faults = [DOWN] * 2


async def test_what_was_answered_is_out_of_storage_before_the_next_post() -> None:
    """If a bucket needs several posts, each is removed from storage after its answer. So a kill does not send it twice."""
    record_store = MemoryRecordStore()
    upstream = Recalling(record_store)
    async with running(record_store=record_store, upstream=upstream, batch=1) as world:
        world.usage.count("a", True)
        world.usage.count("b", True)
        upstream.faults = [DOWN]
        await world.interval()
        assert kept(record_store) == {"a": (1, 0), "b": (1, 0)}
        upstream.seen.clear()
        await world.interval()
        assert upstream.seen == [{"a": (1, 0), "b": (1, 0)}, {"b": (1, 0)}]
        assert kept(record_store) == {"b": (1, 0)}
    assert kept(record_store) == {"b": (1, 0)}


async def test_what_will_never_be_taken_is_out_of_storage_too() -> None:
    """These counts are also counted as refused."""
    record_store = MemoryRecordStore()
    async with running(record_store=record_store) as world:
        world.upstream.faults = [DOWN, UpstreamError("unexpected", "x", status=400)]
        world.usage.count("a", True)
        await world.interval()
        assert len(record_store.data) == 1
        await world.interval()
        assert (world.usage.refused, world.sent) == (1, [])
    assert record_store.data == {}


async def test_an_ambiguous_failure_sends_again_and_once_more_after_a_kill() -> None:
    """If it is unknown whether counts arrived, they are sent again (decision 0017). During the attempt they are stored."""
    record_store = MemoryRecordStore()
    upstream = HangingUpstream()
    upstream.gate.set()
    async with running(record_store=record_store, upstream=upstream) as world:
        world.usage.count("a", True)
        upstream.faults = [DOWN]
        await world.interval()
        upstream.gate.clear()
        await world.interval()
        assert kept(record_store) == {"a": (1, 0)}
        upstream.gate.set()
        await turns()
        assert record_store.data == {} and world.sent == [{"a": tally(1, 0)}]


async def test_what_was_taken_over_is_in_storage_until_it_is_sent() -> None:
    """A process that has taken over another's counts and cannot send them keeps them as its own, and leaves them in turn."""
    record_store = await left()
    async with running(record_store=record_store) as world:
        world.upstream.faults = [DOWN] * 2
        await world.interval()
        world.usage.count("a", False)
        [record] = stored(record_store)
        assert not record.left and kept(record_store) == {"a": (1, 0)}
    assert [record.left for record in stored(record_store)] == [True]
    assert [list(bucket.toggles) for bucket in stored(record_store)[0].buckets()] == [["a"], ["a"]]
    assert kept(record_store) == {"a": (1, 1)}


async def test_what_was_taken_over_is_in_storage_while_it_is_sent() -> None:
    """A process that is killed while the upstream takes its time with another's counts has them in storage as its own."""
    record_store, upstream = await left(), HangingUpstream()
    async with running(record_store=record_store, upstream=upstream) as world:
        await world.interval()
        assert [record.left for record in stored(record_store)] == [False] and kept(record_store) == {"a": (1, 0)}
        upstream.gate.set()
        await turns()
        assert record_store.data == {} and world.sent == [{"a": tally(1, 0)}]


async def test_the_shutdown_looks_for_nothing() -> None:
    """Records of ended processes are for processes that stay."""
    record_store = await left()
    async with running(record_store=record_store) as world:
        pass
    assert world.sent == [] and len(record_store.data) == 1


async def test_an_upstream_that_hangs_at_the_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not leave in time is left in storage."""
    monkeypatch.setattr(reporter, "LAST_SEND_S", 0.01)
    record_store = MemoryRecordStore()
    async with running(record_store=record_store, upstream=HangingUpstream()) as world:
        world.usage.count("a", True)
        await world.interval()
        world.usage.count("b", True)
    assert kept(record_store) == {"a": (1, 0), "b": (1, 0)} and "lost" not in str(world.log.lines)


async def test_where_nothing_can_be_stored_it_is_said_what_is_lost() -> None:
    """The log names the number of lost counters. Sending continues as without storage."""
    record_store = MemoryRecordStore()
    record_store.fault = OSError("full")
    async with running(record_store=record_store) as world:
        world.upstream.faults = [DOWN]
        world.usage.count("a", True)
        await world.interval()
        await world.interval()
        assert world.sent == [{"a": tally(1, 0)}]
        world.usage.count("b", True)
        world.upstream.faults = [DOWN]
    assert world.log.lines[-1].fields == {"entries": 1} and "lost" in world.log.lines[-1].event


async def test_no_interval_no_storage() -> None:
    """With metricsInterval 0 nothing is sent, stored or read, not even at the shutdown (specification: Options)."""
    record_store = MemoryRecordStore()
    record_store.data["left"] = b"anything"
    async with running(record_store=record_store, interval_ms=0) as world:
        world.usage.count("a", True)
        await world.clock.advance(100_000)
    assert world.upstream.attempts == []
    assert record_store.data == {"left": b"anything"} and world.log.lines == []


@pytest.mark.parametrize("faults", [[], [DOWN]], ids=["sent", "stored"])
async def test_a_cancelled_post(faults: list[BaseException]) -> None:
    """A closing event loop cancels every task. The last request sends the counts, or they stay stored for the next run."""
    record_store, upstream = MemoryRecordStore(), HangingUpstream()
    async with running(record_store=record_store, upstream=upstream) as world:
        world.usage.count("a", True)
        before: set[asyncio.Task[Any]] = asyncio.all_tasks()
        await world.interval()
        for task in asyncio.all_tasks() - before:
            task.cancel()
        upstream.gate.set()
        upstream.faults = list(faults)
    assert (world.sent, kept(record_store)) == (([], {"a": (1, 0)}) if faults else ([{"a": tally(1, 0)}], {}))
