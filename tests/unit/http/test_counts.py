"""Numbers by route and status, and histograms of durations."""

from __future__ import annotations

from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.counts import BOUNDS, Calls, Histogram, RouteCounts, StatusCounts


def test_counts_by_route() -> None:
    """One method of one route counts each status for all callers. The tallies are in the order of the first question."""
    counts = RouteCounts()
    first, other = counts.of("GET", "/a"), counts.of("POST", "/a")
    for status in (200, 200, 304):
        counts.of("GET", "/a").add(status)
    assert counts.of("GET", "/a") is first and first.statuses == {200: 2, 304: 1} and other.statuses == {}
    assert [(each.method, each.route) for each in counts.every] == [("GET", "/a"), ("POST", "/a")]


def test_an_answer_has_a_duration_if_its_start_is_known() -> None:
    """The time since the start counts. An event stream has no duration, and counts as a request alone."""
    counts = StatusCounts("GET", "/a")
    counts.add(200, monotonic() - 3)
    counts.add(200)
    assert counts.statuses == {200: 2} and sum(counts.durations.counts) == 1
    assert 3 <= counts.durations.sum < 60


@given(st.lists(st.floats(0, 1e6)))
def test_every_duration_is_in_one_bucket(durations: list[float]) -> None:
    """It is the first bucket whose bound the duration does not pass. The sum is that of all durations."""
    histogram = Histogram()
    for each in durations:
        histogram.add(each)
    for at, bound in enumerate(BOUNDS):
        assert sum(histogram.counts[: at + 1]) == sum(each <= bound for each in durations)
    assert sum(histogram.counts) == len(durations) and histogram.sum == pytest.approx(sum(durations))


def test_a_block_that_raises_has_a_duration() -> None:
    """Its error goes on."""
    histogram = Histogram()
    with pytest.raises(KeyError), histogram.timing():
        raise KeyError
    assert sum(histogram.counts) == 1


def test_calls() -> None:
    """Requests to another server count by what they do and how they end."""
    calls = Calls()
    for outcome in ("ok", "network", "ok"):
        calls.add("features", outcome, 0.5)
    calls.receive(7)
    assert {labels: sum(found.counts) for labels, found in calls.durations.items()} == {
        ("features", "ok"): 2,
        ("features", "network"): 1,
    }
    assert calls.received == 7
