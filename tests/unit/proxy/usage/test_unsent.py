"""Stored counts that could not be sent, and which process may take them. Counts as bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UnsentUsage, UsageBucket, UsageCounters, UsageSource
from flagsvc.proxy.usage.unsent import (
    ABANDONED_INTERVALS,
    PIECE_ENTRIES,
    UnsentRecord,
    UsageWindow,
    make_counts,
    pack,
    to_wire,
    unpack,
)
from flagsvc.testing import FakeClock, MemoryRecordStore, RecordingLog, turns

EVERY_S = 30.0


def bucket(name: str = "a", yes: int = 1) -> UsageBucket:
    return UsageBucket(5.0, 6.0, {name: make_counts(yes, 0, {})})


def names(found: list[UsageBucket]) -> list[str]:
    return [name for each in found for name in each.toggles]


class World:
    """A shelf, and the processes at it; each has a clock of its own, which runs when told to."""

    def __init__(self, record_store: MemoryRecordStore | None = None) -> None:
        self.record_store = record_store or MemoryRecordStore()
        self.log = RecordingLog()
        self.clocks: list[FakeClock] = []

    def unsent_usage(self, **more: Any) -> UnsentUsage:
        self.clocks.append(FakeClock(now=1e9 * len(self.clocks)))
        clock, interval_ms = self.clocks[-1], int(EVERY_S * 1000)
        return UnsentUsage(self.record_store, clock=clock, log=self.log, interval_ms=interval_ms, **more)

    async def pass_s(self, seconds: float) -> None:
        """Let time pass for all."""
        for clock in self.clocks:
            await clock.advance(seconds)


async def test_one_of_several_processes_gets_a_record() -> None:
    """The process that removes the record from the storage gets it, and logs how much it has."""
    world = World()
    assert await world.unsent_usage().save([bucket()], left=True)
    found = await asyncio.gather(*(world.unsent_usage().take_over() for _ in range(5)))
    assert sorted(map(names, found)) == [[], [], [], [], ["a"]]
    assert [(line.level, line.fields) for line in world.log.lines] == [("info", {"entries": 1})]


async def test_records_are_taken_one_by_one() -> None:
    """Only one record is taken at a time, which bounds the memory."""
    world = World()
    for number in range(3):
        await world.unsent_usage().save([bucket(str(number))], left=True)
    looking = world.unsent_usage()
    assert [names(await looking.take_over()) for _ in range(4)] == [["0"], ["1"], ["2"], []]


async def test_the_record_of_a_running_process_stays() -> None:
    """A process takes neither its own record nor that of a process that still writes."""
    world = World()
    living, looking = world.unsent_usage(), world.unsent_usage()
    for _ in range(20):
        await living.save([bucket()])
        assert await looking.take_over() == await living.take_over() == []
        await world.pass_s(EVERY_S)
    assert list(world.record_store.data) == [living.name]


async def test_a_record_that_changes_starts_anew() -> None:
    """Its process lives after all. A record that has not changed for some of its intervals is taken, with any clock difference."""
    world = World()
    slow, looking = world.unsent_usage(), world.unsent_usage()
    await slow.save([bucket()])
    await world.pass_s(1e6)
    assert await looking.take_over() == []
    await world.pass_s(ABANDONED_INTERVALS * EVERY_S - 1)
    await slow.save([bucket()])
    assert await looking.take_over() == []
    await world.pass_s(ABANDONED_INTERVALS * EVERY_S - 1)
    assert await looking.take_over() == []
    await world.pass_s(1)
    assert names(await looking.take_over()) == ["a"]


async def test_a_storage_of_one_process_has_only_earlier_records() -> None:
    """A storage that is not shared has only records of earlier runs."""
    world = World(MemoryRecordStore(shared=False))
    await world.unsent_usage().save([bucket()])
    assert names(await world.unsent_usage().take_over()) == ["a"]


async def test_trouble_with_the_storage_is_told_once_and_survived() -> None:
    """Each kind of failure gives two log lines, for its start and its end. The text of the provider is not repeated."""
    world = World()
    unsent_usage = world.unsent_usage()
    world.record_store.fault = OSError("full of user-4711")
    for _ in range(3):
        assert not await unsent_usage.save([bucket()])
        assert await unsent_usage.take_over() == []
    world.record_store.fault = None
    assert await unsent_usage.save([bucket()])
    assert await unsent_usage.take_over() == []
    assert world.log.at("warn") == [
        "usage metrics could not be stored",
        "stored usage metrics could not be read",
        "usage metrics can be stored again",
        "stored usage metrics can be read again",
    ]
    assert "4711" not in str(world.log.lines)


async def test_what_may_have_been_written_is_removed() -> None:
    """A write that failed may be there all the same: as long as that is not known, nothing is forgotten."""
    world = World()
    unsent_usage = world.unsent_usage()
    world.record_store.fault = OSError("broken")
    assert not await unsent_usage.save([bucket()]) and unsent_usage.has_record
    assert not await unsent_usage.save([]) and unsent_usage.has_record
    world.record_store.fault = None
    world.record_store.data[unsent_usage.name] = b"written after all"
    assert await unsent_usage.save([]) and not unsent_usage.has_record
    assert world.record_store.data == {}  # type: ignore[unreachable]


async def test_a_record_that_cannot_be_read_hides_no_other() -> None:
    """The record stays and is logged once, because it may be of a later version."""
    world = World()
    world.record_store.data["foreign"] = b"something else"
    await world.unsent_usage().save([bucket()], left=True)
    looking = world.unsent_usage()
    assert names(await looking.take_over()) == ["a"]
    assert [await looking.take_over() for _ in range(3)] == [[], [], []]
    assert world.record_store.data == {"foreign": b"something else"}
    assert world.log.at("warn") == ["stored usage metrics could not be read"]


class SlowShelf(MemoryRecordStore):
    """A store that acts when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.doing = 0

    async def put(self, name: str, data: bytes) -> None:
        self.doing += 1
        await self.gate.wait()
        self.doing -= 1
        await super().put(name, data)

    async def remove(self, name: str) -> bool:
        await self.gate.wait()
        return await super().remove(name)


async def test_a_storage_that_hangs_delays_nothing() -> None:
    """Each call waits only a moment. No second call starts while one hangs, and the hanging call completes in order."""
    record_store = SlowShelf()
    world = World(record_store)
    unsent_usage = world.unsent_usage(wait_s=0.01)
    for _ in range(3):
        assert not await unsent_usage.save([bucket()])
    assert not await unsent_usage.save([])
    assert (record_store.doing, unsent_usage.has_record) == (1, True)
    record_store.gate.set()
    await turns()
    assert record_store.doing == 0 and list(record_store.data) == [unsent_usage.name]
    assert await unsent_usage.save([]) and record_store.data == {}


async def test_a_storage_that_fails_slowly_is_not_asked_for_everything() -> None:
    """After one slow operation, the others wait for the next time, so that counting here is not delayed for minutes."""

    class Failing(MemoryRecordStore):
        asked = 0

        async def get(self, name: str) -> bytes | None:
            """Take its time, and fail."""
            self.asked += 1
            await world.pass_s(1.0)
            raise StoreError("away")

    record_store = Failing()
    world = World(record_store)
    for _ in range(20):
        await world.unsent_usage().save([bucket()], left=True)
    assert await world.unsent_usage().take_over() == [] and record_store.asked == 2


async def test_a_failure_behind_our_back_is_nobodys() -> None:
    """What hung and then failed raises nowhere."""
    record_store = SlowShelf()
    world = World(record_store)
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    assert not await world.unsent_usage(wait_s=0.01).save([bucket()])
    record_store.fault = OSError("too late")
    record_store.gate.set()
    await turns()
    assert complaints == []


async def test_what_a_loop_that_ends_cancels_is_trouble_like_any() -> None:
    """A write that somebody else has cancelled does not cancel who waits for it."""
    record_store = SlowShelf()
    unsent_usage = World(record_store).unsent_usage()
    before = asyncio.all_tasks()
    keeping = asyncio.create_task(unsent_usage.save([bucket()]))
    await turns()
    [writing] = asyncio.all_tasks() - before - {keeping}
    writing.cancel()
    assert await keeping is False


async def test_a_record_that_vanishes_while_we_look_is_nobodys_trouble() -> None:
    """Somebody else was faster, or its process could send after all."""

    class Vanishing(MemoryRecordStore):
        async def names(self) -> list[str]:
            return ["gone", *await super().names()]

    world = World(Vanishing())
    await world.unsent_usage().save([bucket()], left=True)
    assert names(await world.unsent_usage().take_over()) == ["a"]
    assert world.log.at("warn") == []


def counted(start: float = 5.0) -> UsageBucket:
    now = iter((start, start + 1))
    counters = UsageCounters(lambda: {"a": (), "b": ("v",)}, lambda: next(now))
    counters.count("a", True)
    counters.add("b", 2, 3, {"v": 4})
    drained = counters.drain()
    assert drained is not None
    return drained


def measured(samples: int = 1) -> UsageBucket:
    """Return a bucket of an application's impact metrics, with so many samples of its counter."""
    counters = UsageCounters(dict, lambda: 5.0)
    source = UsageSource("shop", "one")
    for number in range(samples):
        labels = (("appName", "shop"), ("number", str(number)))
        counters.add_impact(ImpactSample(ImpactKey("sales", "counter", ()), "Sales.", labels, [2.5]), source)
    counters.add_impact(ImpactSample(ImpactKey("load", "gauge", ()), "Load.", (), [-1.0]), source)
    histogram = ImpactKey("time", "histogram", (0.5, 5.0))
    counters.add_impact(ImpactSample(histogram, "Time.", (), [7.5, 3.0, 1.0, 2.0]), source)
    [made] = counters.drain_sources()
    return made


def read_impact(found: UsageBucket) -> object:
    return {key: (series.help, series.samples) for key, series in found.impact.items()}


def packed(buckets: list[UsageBucket], *, left: bool = False, every: float = 1.0) -> bytes:
    return b"".join(pack(buckets, left=left, beat=7, every=every))


def large(toggles: int, variants: int) -> UsageBucket:
    """Return a bucket of so many toggles with so many variants each."""
    known = {f"toggle-{number}": tuple(f"v{each}" for each in range(variants)) for number in range(toggles)}
    counters = UsageCounters(lambda: known, lambda: 5.0)
    for name, names in known.items():
        counters.add(name, 1, 2, dict.fromkeys(names, 3))
    return counters.peek()


def read(found: UsageBucket) -> object:
    return found.start, found.stop, {name: (t.yes, t.no, t.variants) for name, t in found.toggles.items()}


def test_a_record_survives() -> None:
    """All buckets stay separate, and the record keeps the data about its process."""
    record = unpack(packed([counted(), counted(100.0)], left=True, every=30.0))
    assert (record.left, record.beat, record.every) == (True, 7, 30.0)
    assert [read(each) for each in record.buckets()] == [read(counted()), read(counted(100.0))]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"flagsvc":1,"etag":null}\n{}',
        packed([], left=True).replace(b'"version":1', b'"version":2'),
        packed([counted()], left=True).replace(b'"v":4', b'"v":-4'),
        packed([counted()], left=True).replace(b'"v":4', b'"v":"4"'),
        packed([counted()], left=True)[:-1],
        packed([measured()], left=True).replace(b"[7.5,3.0,", b"[3.0,"),
        packed([measured()], left=True).replace(b"[7.5,3.0,", b"[1e300,3.0,"),
        packed([measured()], left=True).replace(b'"gauge"', b'"counter"'),
        packed([measured()], left=True).replace(b'"gauge"', b'"summary"'),
    ],
)
def test_other_data_are_no_record(data: bytes) -> None:
    """Data of another program, a later version or with impossible counts are refused."""
    with pytest.raises(StoreError, match="no usage metrics"):
        unpack(data)


def test_what_is_written_is_short() -> None:
    """Usage is written as a list: it goes up from every worker twenty times a second."""
    assert isinstance(to_wire(counted()), UsageWindow)
    assert b'[5.0,6.0,{"a":[1,0,{}],"b":[2,3,{"v":4}]},null,[]]' in packed([counted()])


@pytest.mark.parametrize(
    ("toggles", "variants"), [(0, 0), (PIECE_ENTRIES - 1, 0), (PIECE_ENTRIES, 0), (PIECE_ENTRIES + 1, 0), (4 * PIECE_ENTRIES, 2)]
)
def test_a_large_record_is_written_in_pieces(toggles: int, variants: int) -> None:
    """Each a moment's work, and together what would be written at once."""
    buckets = [large(toggles, variants), counted(), large(toggles, variants)]
    made = list(pack(buckets, left=False, beat=7, every=1.0))
    whole = UnsentRecord(left=False, beat=7, every=1.0, usages=[to_wire(each) for each in buckets])
    assert b"".join(made) == msgspec.json.encode(whole)
    assert max(piece.count(b"[1,2,") for piece in made) <= PIECE_ENTRIES // (1 + variants) + 1
    assert len(made) >= 2 * (toggles * (1 + variants) // PIECE_ENTRIES)


def test_what_is_counted_while_a_record_is_written() -> None:
    """It is in it or not; the record is whole either way."""
    known = {f"toggle-{number}": () for number in range(3 * PIECE_ENTRIES)}
    counters = UsageCounters(lambda: known, lambda: 5.0)
    made = []
    for number in range(2 * PIECE_ENTRIES):
        counters.count(f"toggle-{number}", True)
    for piece in pack([counters.peek()], left=False, beat=7, every=1.0):
        made.append(piece)
        for number in range(3 * PIECE_ENTRIES):
            counters.count(f"toggle-{number}", True)
    [found] = unpack(b"".join(made)).buckets()
    assert len(found.toggles) in (2 * PIECE_ENTRIES, 3 * PIECE_ENTRIES) and all(tally.yes >= 1 for tally in found.toggles.values())


def test_impact_metrics_survive() -> None:
    """They come out as they were measured, with the moments of gauges; they can be measured while a record is written."""
    made = measured(3)
    [kept] = unpack(packed([made])).buckets()
    assert (kept.source, read_impact(kept)) == (made.source, read_impact(made))
    whole = UnsentRecord(left=False, beat=7, every=1.0, usages=[to_wire(counted()), to_wire(made)])
    assert packed([counted(), made]) == msgspec.json.encode(whole)
    pieces = []
    for piece in pack([made], left=False, beat=7, every=1.0):
        pieces.append(piece)
        made.impact.clear()
    assert unpack(b"".join(pieces)).usages[0].impact == []


@pytest.mark.parametrize(("more", "source"), [(b"", None), (b',["shop","one"]', UsageSource("shop", "one"))])
def test_a_record_of_an_earlier_version(more: bytes, source: UsageSource | None) -> None:
    """A record without applications is the proxy's. A record without impact metrics gives no impact metrics."""
    data = b'{"version":1,"left":true,"beat":7,"every":1.0,"usages":[[5.0,6.0,{"a":[1,0,{}]}' + more + b"]]}"
    [old] = unpack(data).buckets()
    assert (old.source, old.impact, read(old)) == (source, {}, (5.0, 6.0, {"a": (1, 0, {})}))
