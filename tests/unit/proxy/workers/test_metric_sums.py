"""The sums of metrics: nothing counted twice, nothing lost, and no gauges of workers that have ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.counts import StatusCounts
from flagsvc.http.metrics import CERTIFICATE, DURATIONS, SUM, Readings
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.metrics import Sources
from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.workers.metric_sums import MetricChanges, MetricSums, NewReadings, growth
from flagsvc.testing import FakeClock
from support.serving import holder_of

COUNTER = ("flagsvc_http_requests", "/proxy", "GET", "200")
GAUGE = ("flagsvc_answer_cache_bytes",)
BUCKET, SECONDS = (DURATIONS, "/proxy", "GET", "+Inf"), (DURATIONS, "/proxy", "GET", SUM)


def sources(*counts: StatusCounts) -> Sources:
    """Return the sources of the metrics of a service with these counts."""
    clock = FakeClock()
    return Sources(holder_of(None), UsageCounters(dict, clock.now), counts, clock, AnswerCache(0))


def test_changes() -> None:
    """The growth of counters is sent, and the value of other metrics if it changed. Readings may be a part of all."""
    changes = MetricChanges()
    assert changes.take_changes({COUNTER: 5, GAUGE: 7}) == {COUNTER: 5, GAUGE: 7}
    assert changes.take_changes({COUNTER: 5, GAUGE: 7}) == {}
    assert changes.take_changes({COUNTER: 8}) == {COUNTER: 3}
    assert changes.take_changes({COUNTER: 9, GAUGE: 3}) == {COUNTER: 1, GAUGE: 3}
    assert changes.take_changes({COUNTER: 9, GAUGE: 0}) == {GAUGE: 0}


def test_fresh_readings() -> None:
    """Only routes with new requests are read. Together with full readings nothing is missed or sent twice."""
    first, second = StatusCounts("GET", "/proxy"), StatusCounts("POST", "/proxy")
    fresh, changes = NewReadings(sources(first, second)), MetricChanges()
    assert fresh.take_new() == {}
    first.add(200)
    second.add(200)
    assert changes.take_changes(fresh.take_new()) == {COUNTER: 1, (COUNTER[0], "/proxy", "POST", "200"): 1}
    first.add(200)
    first.add(404)
    assert changes.take_changes(fresh.take_new()) == {COUNTER: 1, (COUNTER[0], "/proxy", "GET", "404"): 1}
    assert fresh.take_new() == {}


def test_durations_are_told_with_their_requests() -> None:
    """Buckets and seconds of a worker's histogram add up as its requests do, and stay when the worker ends."""
    sums = MetricSums()
    for worker in (0, 1):
        counts = StatusCounts("GET", "/proxy")
        fresh, changes = NewReadings(sources(counts)), MetricChanges()
        for number in (1, 2):
            counts.add(200, started=-99.0)  # longer than any bound
            told = changes.take_changes(fresh.take_new())
            assert (told[COUNTER], told[BUCKET]) == (1, 1) and told[SECONDS] >= 99, number
            sums.add(worker, told)
        sums.forget_worker(worker)
    total = sums.total({})
    assert (total[COUNTER], total[BUCKET]) == (4, 4) and total[SECONDS] >= 4 * 99


def test_the_first_end_of_a_certificate_counts() -> None:
    """Workers may have read another certificate than others: the end that comes first is shown, and no sum."""
    sums = MetricSums()
    sums.add(0, {(CERTIFICATE,): 2000.0})
    sums.add(1, {(CERTIFICATE,): 1000.0})
    assert sums.total({}) == {(CERTIFICATE,): 1000.0}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=30))
def test_sums_of_workers_that_come_and_go(steps: list[tuple[int, int, int, bool]]) -> None:
    """For any number of messages and replacements, counters add up to what was sent, and gauges to the present values."""
    sums, expected = MetricSums(), 0
    lives: dict[int, tuple[MetricChanges, Readings]] = {}
    for worker, grown, size, dies in steps:
        changes, readings = lives.setdefault(worker, (MetricChanges(), {COUNTER: 0, GAUGE: 0}))
        readings[COUNTER] += grown
        readings[GAUGE] = size
        expected += grown
        sums.add(worker, changes.take_changes(dict(readings)))
        if dies:
            del lives[worker]
            sums.forget_worker(worker)
    total = sums.total({COUNTER: 0, GAUGE: 0})
    assert total[COUNTER] == expected
    assert total[GAUGE] == sum(readings[GAUGE] for _, readings in lives.values())


@pytest.mark.parametrize(("value", "sent", "grown"), [(7, 5, 2), (5, 5, 0), (3, 5, 3), (0, 5, 0)])
def test_how_much_a_counter_has_grown(value: int, sent: int, grown: int) -> None:
    """A counter that is smaller than before began at 0 again. No growth is negative."""
    assert growth(value, sent) == grown


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30))
def test_counters_of_environments_that_are_replaced(steps: list[tuple[int, bool]]) -> None:
    """The counters of a replacement begin at 0; the sum never goes down, and is never more than what was counted."""
    changes, sums, value, counted, shown = MetricChanges(), MetricSums(), 0, 0, 0.0
    for grown, is_replaced in steps:
        value, counted = (grown if is_replaced else value + grown), counted + grown
        sums.add(0, changes.take_changes({COUNTER: value}))
        assert shown <= (shown := sums.total({COUNTER: 0})[COUNTER]) <= counted


def test_new_requests_of_environments() -> None:
    """They have the name of their environment. Requests of the process have an empty name. An environment may come later."""
    process, of_a, of_b = (StatusCounts("GET", "/proxy") for _ in range(3))
    parts = {"a": sources(of_a)}
    fresh = NewReadings(sources(process)._replace(environments=lambda: parts))
    for counts in (process, of_a, of_b):
        counts.add(200)
    name, *labels = COUNTER
    assert fresh.take_new() == {(name, "", *labels): 1, (name, "a", *labels): 1}
    parts["b"] = sources(of_b)
    assert fresh.take_new() == {(name, "b", *labels): 1}
    del parts["a"]
    of_a.add(200)
    assert fresh.take_new() == {}


def test_new_requests_of_a_single_environment() -> None:
    """They have no label, and each is told once, although the process counts them, too."""
    counts = StatusCounts("GET", "/proxy")
    fresh = NewReadings(sources(counts)._replace(environments=lambda: {"": sources(counts)}))
    counts.add(200)
    assert fresh.take_new() == {COUNTER: 1}
