"""Impact metrics over any sequence of reports, posts that fail and ways through workers: none is invented, none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.reports import GAUGE
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageBucket, UsageCounters, UsageSource
from flagsvc.proxy.usage.impact import combine
from flagsvc.proxy.usage.record import from_wire, pack, to_wire, unpack

COUNTER_KEY = ImpactKey("sales", "counter", ())
GAUGE_KEY = ImpactKey("load", "gauge", ())
HISTOGRAM_KEYS = (ImpactKey("time", "histogram", (0.5, 5.0)), ImpactKey("time", "histogram", (1.0,)))
LABELS = ((), (("appName", "shop"),), (("appName", "shop"), ("on", "enabled")))
SOURCES = (None, UsageSource("shop", "one"), UsageSource("shop", "two"))
NUMBERS = st.integers(0, 1_000_000).map(lambda number: number / 4)
"""Fractions whose sums are exact, so that their order does not matter."""


def values_of(key: ImpactKey) -> st.SearchStrategy[list[float]]:
    """Return values for a sample of a metric."""
    size = 2 + len(key.bounds) if key.kind == "histogram" else 1
    return st.lists(NUMBERS, min_size=size, max_size=size)


def samples(keys: Iterable[ImpactKey]) -> st.SearchStrategy[ImpactSample]:
    """Return samples of some metrics."""
    return st.sampled_from(list(keys)).flatmap(
        lambda key: st.builds(ImpactSample, st.just(key), st.just("help"), st.sampled_from(LABELS), values_of(key))
    )


SUMMED = samples((COUNTER_KEY, *HISTOGRAM_KEYS))
PAIRS = st.tuples(NUMBERS, NUMBERS).map(list)


@given(PAIRS, PAIRS, PAIRS, st.sampled_from(["counter", "gauge", "histogram"]))
def test_merging_is_associative(one: list[float], two: list[float], three: list[float], kind: str) -> None:
    """It does not matter which of three posts in a row are merged first. For sums the order does not matter either."""
    left, right, rest = list(one), list(one), list(two)
    combine(kind, left, two)
    combine(kind, left, three)
    combine(kind, rest, three)
    combine(kind, right, rest)
    assert left == right
    if kind != GAUGE:
        back = list(three)
        combine(kind, back, two)
        combine(kind, back, one)
        assert back == left


class Clock:
    """A clock that goes on with each look."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        """Return the time."""
        self.time += 1
        return self.time


def drained(counters: UsageCounters) -> list[UsageBucket]:
    """Take all buckets of some counters."""
    own = counters.drain()
    return [*([] if own is None else [own]), *counters.drain_sources()]


def totals(buckets: Iterable[UsageBucket]) -> Counter[object]:
    """Return the sum of each number, by source, metric, labels and place."""
    found: Counter[object] = Counter()
    for bucket in buckets:
        for key, series in bucket.impact.items():
            for labels, values in series.samples.items():
                found.update({(bucket.source, key, labels, at): value for at, value in enumerate(values)})
    return found


REPORTS = st.lists(st.tuples(SUMMED, st.sampled_from(SOURCES)), max_size=10)
WAYS = st.sampled_from(["sent", "failed", "stored"])


@given(st.lists(st.tuples(st.integers(0, 1), REPORTS, WAYS), max_size=8))
def test_sums_are_conserved(rounds: list[tuple[int, list[tuple[ImpactSample, UsageSource | None]], str]]) -> None:
    """What was measured is what was sent, through two workers, failed posts and storage, under the name of its application."""
    clock = Clock()
    workers = [UsageCounters(dict, clock) for _ in range(2)]
    parent = UsageCounters(dict, clock)
    sent: list[UsageBucket] = []
    expected: Counter[object] = Counter()
    for worker, reports, way in rounds:
        for sample, source in reports:
            workers[worker].add_impact(sample, source)
            expected.update({(source, sample.key, sample.labels, at): value for at, value in enumerate(sample.values)})
        for bucket in drained(workers[worker]):
            parent.merge(from_wire(to_wire(bucket)))
        buckets = drained(parent)
        if way == "sent":
            sent += buckets
            continue
        if way == "stored":
            buckets = unpack(b"".join(pack(buckets, left=True, beat=1, every=1.0))).buckets()
        for bucket in buckets:
            parent.merge(bucket)
    sent += drained(parent)
    assert +totals(sent) == +expected
    assert parent.entries == parent.full == 0


@given(st.lists(st.tuples(st.integers(0, 1), NUMBERS, st.booleans()), min_size=1, max_size=10), st.data())
def test_the_last_value_of_a_gauge_counts(reports: list[tuple[int, float, bool]], data: st.DataObject) -> None:
    """In any order in which workers send what they measured, and also if posts fail."""
    clock = Clock()
    workers = [UsageCounters(dict, clock) for _ in range(2)]
    parent = UsageCounters(dict, clock)
    waiting: list[UsageBucket] = []
    for worker, value, fails in reports:
        workers[worker].add_impact(ImpactSample(GAUGE_KEY, "help", (), [value]))
        waiting += drained(workers[worker])
        if fails:
            waiting += drained(parent)
    for bucket in data.draw(st.permutations(waiting)):
        parent.merge(bucket)
    [last] = drained(parent)
    assert last.impact[GAUGE_KEY].samples[()][0] == reports[-1][1]
