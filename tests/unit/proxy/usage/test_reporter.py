"""Registration and usage metrics. What becomes of counts that cannot be sent: in storage, in other lives, in other processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import Reporter, UnsentUsage, UsageCounters, UsageSource, reporter
from flagsvc.proxy.usage.unsent import UnsentRecord, unpack
from flagsvc.testing import FakeClock, MemoryRecordStore, RecordingLog, RecordingUpstream, turns

DOWN = UpstreamError("network", "nobody there")


class HangingUpstream(RecordingUpstream):
    """An upstream that accepts metrics when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        await self.gate.wait()
        await super().send_metrics(payload)


@dataclass
class ReporterScene:
    """A reporter and everything around it."""

    upstream: RecordingUpstream = field(default_factory=RecordingUpstream)
    clock: FakeClock = field(default_factory=FakeClock)
    log: RecordingLog = field(default_factory=RecordingLog)
    draw: Callable[[], float] = lambda: 0.0
    interval_ms: int = 30_000
    jitter_ms: int = 0
    batch: int = 10_000
    record_store: MemoryRecordStore | None = None

    def __post_init__(self) -> None:
        self.usage = UsageCounters(lambda: {"a": (), "b": ()}, self.clock.now)
        self.unsent_usage: UnsentUsage | None = None
        if self.record_store is not None:
            self.unsent_usage = UnsentUsage(self.record_store, clock=self.clock, log=self.log, interval_ms=self.interval_ms)
        self.reporter = Reporter(
            self.usage,
            self.upstream,
            Identity("app", "instance", "connection"),
            clock=self.clock,
            log=self.log,
            draw=lambda: self.draw(),
            interval_ms=self.interval_ms,
            jitter_ms=self.jitter_ms,
            batch=self.batch,
            unsent_usage=self.unsent_usage,
            custom_strategies=["mine"],
            synchronised=lambda: asyncio.sleep(0),
        )

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The toggles of each metrics post that was taken."""
        return [payload["bucket"]["toggles"] for payload in self.upstream.metrics]  # type: ignore[index]

    async def interval(self) -> float:
        """Let the time until the next sending pass and return it."""
        delay = await self.clock.next_sleep()
        await self.clock.advance(delay)
        return delay


@asynccontextmanager
async def running(**changes: Any) -> AsyncIterator[ReporterScene]:
    world = ReporterScene(**changes)
    world.reporter.start()
    await turns()
    try:
        yield world
    finally:
        await world.reporter.stop()


def tally(yes: int, no: int) -> dict[str, object]:
    """Return the counts of a toggle without variants in a post."""
    return {"yes": yes, "no": no, "variants": {}}


LOST = "usage metrics are lost: they could be neither sent nor stored"


async def test_registration_is_retried_until_it_succeeds() -> None:
    """The back-off grows, Retry-After is obeyed, and the failure is logged once."""
    world = ReporterScene()
    faults = [DOWN] * 8 + [UpstreamError("throttled", "x", status=429, retry_after=1000)]
    world.upstream.faults = list(faults)
    world.usage.drain()
    world.reporter.start()
    delays: list[float] = []
    while not world.upstream.registrations:
        delay = await world.clock.next_sleep()
        await world.clock.advance(delay)
        delays.append(delay)
    pauses = [delay for delay in delays if delay != world.interval_ms / 1000]
    assert pauses == [5.0, 10.0, 20.0, 40.0, 80.0, 150.0, 150.0, 150.0, 1000.0]
    assert [line for line in world.log.at("info", "warn") if "registration" in line] == [
        "the registration was not taken",
        "the registration was not taken",
        "the registration was taken",
    ]
    await world.reporter.stop()


@pytest.mark.parametrize(
    ("jitter_ms", "draw", "seconds"),
    [(0, 0.9, 30.0), (10_000, 0.0, 20.0), (10_000, 0.5, 30.0), (10_000, 1.0, 40.0), (60_000, 0.0, 3.0)],
)
async def test_jitter_moves_each_interval(jitter_ms: int, draw: float, seconds: float) -> None:
    """Up to metricsJitter earlier or later, and never so early that it is a storm."""
    async with running(jitter_ms=jitter_ms, draw=lambda: draw) as world:
        assert await world.interval() == seconds


async def test_what_could_not_be_sent_is_sent_later() -> None:
    """Unsent counts are merged with later ones."""
    async with running() as world:
        world.upstream.faults = [DOWN, DOWN, UpstreamError("server", "x", status=503)]
        delays = []
        for _ in range(5):
            world.usage.count("a", True)
            delays.append(await world.interval())
        assert world.sent == [{"a": tally(4, 0)}, {"a": tally(1, 0)}]
        assert delays == [30.0, 30.0, 60.0, 120.0, 30.0]
        assert (world.usage.full, world.usage.refused) == (0, 0)
        assert world.log.at("warn") == [*["usage metrics could not be sent"] * 2, "usage metrics are sent again"]


async def test_retry_after_is_obeyed() -> None:
    """The next attempt is not a second too early."""
    async with running() as world:
        world.upstream.faults = [UpstreamError("throttled", "x", status=429, retry_after=1234)]
        world.usage.count("a", True)
        assert [await world.interval() for _ in range(2)] == [30.0, 1234.0]
        assert world.sent == [{"a": tally(1, 0)}]


@pytest.mark.parametrize(
    "error",
    [
        *(UpstreamError("x", "x", status=status) for status in (302, 401, 403, 404, 408, 429, 500, 503)),
        UpstreamError("document", "a web page", status=200),
        DOWN,
    ],
)
async def test_counts_that_may_be_taken_later_are_kept(error: UpstreamError) -> None:
    """Among them what may have arrived although the answer did not (decision 0017)."""
    async with running() as world:
        world.upstream.faults = [error]
        world.usage.count("a", True)
        await world.interval()
        await world.interval()
        assert (world.sent, world.usage.refused) == ([{"a": tally(1, 0)}], 0)


async def test_a_refused_token_is_retried_slowly_and_told_once() -> None:
    """The pace and the log are those of the poller for a refused token."""
    async with running() as world:
        world.upstream.faults = [UpstreamError("unauthorized", "x", status=401)] * 3
        world.usage.count("a", True)
        assert [await world.interval() for _ in range(4)] == [30.0, 150.0, 150.0, 150.0]
        assert world.log.at("error") == ["usage metrics could not be sent"]


async def test_a_failure_at_the_shutdown_does_not_stop_it() -> None:
    """Any exception is allowed: an error of the upstream or an unexpected one."""
    for fault in (DOWN, RuntimeError("bug")):
        async with running() as world:
            world.usage.count("a", False)
            world.upstream.faults = [fault]
        assert world.sent == [] and world.log.at("warn") == ["usage metrics could not be sent", LOST]


async def test_the_shutdown_waits_for_a_request_on_its_way() -> None:
    """The request is not cut off. Counts that came later are sent after it."""
    upstream = HangingUpstream()
    async with running(upstream=upstream) as world:
        world.usage.count("a", True)
        await world.interval()
        world.usage.count("b", True)
        stopping = asyncio.create_task(world.reporter.stop())
        await turns()
        assert world.sent == []
        upstream.gate.set()
        await stopping
    assert world.sent == [{"a": tally(1, 0)}, {"b": tally(1, 0)}]


async def test_the_shutdown_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream that hangs delays the shutdown by a few seconds."""
    monkeypatch.setattr(reporter, "LAST_SEND_S", 0.01)
    async with running(upstream=HangingUpstream()) as world:
        world.usage.count("a", True)
        before = asyncio.all_tasks()
        await world.interval()
    told, lost = world.log.lines[-2:]
    assert "at the shutdown" in str(told.fields["error"])
    assert (lost.event, lost.fields) == (LOST, {"entries": 1})
    assert asyncio.all_tasks() < before
    bucket = world.usage.drain()
    assert bucket is not None and bucket.toggles["a"].yes == 1


async def test_a_fault_nobody_thought_of_loses_no_counts_and_does_not_end_the_loop() -> None:
    """It is counted as a restart; the counts leave with the next sending."""
    async with running() as world:
        world.upstream.faults = [RuntimeError("bug")]
        world.usage.count("a", True)
        await world.interval()
        await world.interval()
        assert world.reporter.restarts == 1
        await world.interval()
        assert world.sent == [{"a": tally(1, 0)}]


async def test_applications_have_their_own_posts() -> None:
    """What an application counted goes upstream under its name and instance, also after a failure, with the earlier start."""
    async with running() as world:
        world.upstream.faults = [DOWN]
        world.usage.count("a", True)
        world.usage.add("b", 2, 1, {}, UsageSource("shop", "one"))
        await world.interval()
        assert world.sent == []
        world.usage.add("b", 1, 0, {}, UsageSource("shop", "one"))
        await world.interval()
        posts = {(each["appName"], each["instanceId"]): each["bucket"]["toggles"] for each in world.upstream.metrics}  # type: ignore[index]
        assert posts == {("app", "instance"): {"a": tally(1, 0)}, ("shop", "one"): {"b": tally(3, 1)}}
        assert "connectionId" not in world.upstream.metrics[1]
        assert len({each["bucket"]["start"] for each in world.upstream.metrics}) == 1  # type: ignore[index]
        assert world.usage.drain_sources() == []


async def test_registrations_of_applications_are_sent_once() -> None:
    """They wait while the upstream is away. A registration that the upstream refuses for good does not hold up the other ones."""
    async with running() as world:
        own = len(world.upstream.registrations)
        for name in ("bad", "shop"):
            world.usage.register(UsageSource(name, "one"), {"appName": name})
        world.upstream.faults = [DOWN]
        await world.interval()
        assert len(world.upstream.registrations) == own
        world.upstream.faults = [UpstreamError("unexpected", "x", status=400)]
        await world.interval()
        assert world.upstream.registrations[own:] == [{"appName": "shop"}]
        await world.interval()
        assert len(world.upstream.registrations) == own + 1


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
