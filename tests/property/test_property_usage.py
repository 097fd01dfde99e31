"""Usage counts over any sequence of counting, sending, failing, ending, kills and starts: none is invented, none is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import Reporter, UnsentUsage, UsageCounters
from flagsvc.proxy.usage.unsent import ABANDONED_INTERVALS, unpack
from flagsvc.testing import FakeClock, MemoryRecordStore, RecordingLog, RecordingUpstream
from support.same_inputs import examples

NAMES = ("a", "b", "c")
EVERY_MS = 1000
FAULTS = [UpstreamError("network", "x"), UpstreamError("server", "x", status=503), UpstreamError("throttled", "x", status=429)]
TOO_LARGE = UpstreamError("unexpected", "x", status=413)


class Upstream(RecordingUpstream):
    """Takes posts, or fails as told: `outcomes` are used up one a post, then all is well. `taken` is what it knows."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: Counter[str] = Counter()
        self.outcomes: list[str] = []

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Take a post, or do not."""
        outcome = self.outcomes.pop(0) if self.outcomes else "take"
        toggles = payload["bucket"]["toggles"]  # type: ignore[index]
        if outcome == "fail":
            raise FAULTS[len(self.outcomes) % len(FAULTS)]
        if outcome == "too large" and len(toggles) > 1:
            raise TOO_LARGE
        for name, tally in toggles.items():
            self.taken[name] += tally["yes"]


@dataclass
class Process:
    """One process with its reporter; the loop is turned by hand."""

    record_store: MemoryRecordStore
    upstream: Upstream
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        log = RecordingLog()
        self.counters = UsageCounters(lambda: dict.fromkeys(NAMES, ()), self.clock.now)
        self.unsent_usage = UnsentUsage(self.record_store, clock=self.clock, log=log, interval_ms=EVERY_MS)
        self.reporter = Reporter(
            self.counters,
            self.upstream,
            Identity("app", "instance", "connection"),
            clock=self.clock,
            log=log,
            draw=lambda: 0.0,
            interval_ms=EVERY_MS,
            batch=2,
            unsent_usage=self.unsent_usage,
            synchronised=asyncio.Event().wait,  # type: ignore[arg-type]
        )

    async def live(self) -> None:
        """Do what the loop does in an interval in which it does not send."""
        await self.reporter._store()

    async def round(self) -> None:
        """Do what the loop does once in an interval."""
        await self.clock.advance(EVERY_MS / 1000)
        await self.reporter._send()


def on(record_store: MemoryRecordStore, name: str | None = None) -> Counter[str]:
    """Return what is in storage, in all records or in one."""
    found: Counter[str] = Counter()
    for each, data in record_store.data.items():
        for bucket in unpack(data).buckets() if name in (None, each) else ():
            found.update({toggle: tally.yes for toggle, tally in bucket.toggles.items()})
    return found


STEPS = st.one_of(
    st.tuples(st.just("count"), st.integers(0, 2), st.sampled_from(NAMES)),
    st.tuples(st.just("round"), st.integers(0, 2), st.lists(st.sampled_from(["take", "fail", "too large"]), max_size=4)),
    st.tuples(st.just("end"), st.integers(0, 2), st.lists(st.sampled_from(["take", "fail"]), max_size=2)),
    st.tuples(st.just("kill"), st.integers(0, 2), st.none()),
)


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(STEPS, max_size=40))
def test_every_count_is_somewhere(steps: list[tuple[str, int, object]]) -> None:
    """A count is sent, or waits in memory or storage; a kill loses only counts in the memory of one process."""
    asyncio.run(asyncio.wait_for(play(steps), 30))


async def play(steps: list[tuple[str, int, object]]) -> None:
    """Play the steps, then let all be well, and compare."""
    record_store, upstream = MemoryRecordStore(), Upstream()
    processes = [Process(record_store, upstream) for _ in range(3)]
    counted: Counter[str] = Counter()
    for what, at, detail in steps:
        process = processes[at]
        upstream.outcomes = list(detail) if isinstance(detail, list) else []
        if what == "count":
            process.counters.count(str(detail), True)
            counted[str(detail)] += 1
        elif what == "round":
            await process.round()
            for other in processes:
                await other.live()
        elif what == "end":
            await process.reporter.stop()
            processes[at] = Process(record_store, upstream)
        else:
            counted -= memory(process) - on(record_store, process.unsent_usage.name)
            processes[at] = Process(record_store, upstream)
        assert +(upstream.taken + waiting(record_store, processes)) == +counted
    upstream.outcomes = []
    for _ in range(ABANDONED_INTERVALS + 2):
        for process in processes:
            await process.round()
            for other in processes:
                await other.live()
    assert +upstream.taken == +counted and record_store.data == {}


def memory(process: Process) -> Counter[str]:
    """Return what a process has in memory."""
    found: Counter[str] = Counter()
    for bucket in process.reporter._pending_buckets():
        found.update({name: tally.yes for name, tally in bucket.toggles.items()})
    return found


def waiting(record_store: MemoryRecordStore, processes: list[Process]) -> Counter[str]:
    """Return what waits: in the memory of the living, and in the storage of those who are gone."""
    names = {process.unsent_usage.name for process in processes}
    found: Counter[str] = Counter()
    for process in processes:
        found.update(memory(process))
    for name in record_store.data.keys() - names:
        found.update(on(record_store, name))
    return found
