"""Impact metrics on their way through the counters."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageBucket, UsageCounters, UsageSource
from flagsvc.proxy.usage.impact import MAX_BOUNDS, MAX_LABEL_SETS, MAX_LABELS, MAX_NUMBER, MAX_TEXT, combine
from flagsvc.proxy.usage.reporter import metrics_body

SALES = ImpactKey("sales", "counter", ())
LOAD = ImpactKey("load", "gauge", ())
TIME = ImpactKey("time", "histogram", (0.5, 5.0))
PLAIN, VARIED = (("appName", "shop"),), (("appName", "shop"), ("on", "enabled"))
SHOP = UsageSource("shop", "one")


def counters(max_entries: int = 1000, max_bytes: int = 1_000_000) -> UsageCounters:
    """Return counters that know one toggle, with a clock that goes on with each look."""
    return UsageCounters(lambda: {"a": frozenset()}, count(100.0).__next__, max_entries=max_entries, max_bytes=max_bytes)


def sample(key: ImpactKey, *values: float, labels: tuple[tuple[str, str], ...] = PLAIN) -> ImpactSample:
    return ImpactSample(key, "help", labels, list(values))


def read(bucket: UsageBucket | None) -> dict[str, dict[Any, list[float]]]:
    """Return the samples of a bucket by the name of their metric, without the moments of gauges."""
    assert bucket is not None
    return {
        key.name: {labels: values[:1] if key.kind == "gauge" else values for labels, values in series.samples.items()}
        for key, series in bucket.impact.items()
    }


def test_what_adds_up_and_what_does_not() -> None:
    """Counters and histograms are summed for each set of labels; of a gauge the last value counts."""
    usage = counters()
    for key, first, second in ((SALES, [2.0], [3.0]), (LOAD, [9.0], [4.0]), (TIME, [1.5, 2, 0, 1], [2, 1, 1, 1])):
        usage.add_impact(sample(key, *first))
        usage.add_impact(sample(key, *second))
    usage.add_impact(sample(SALES, 7, labels=VARIED))
    assert usage.entries == 4
    found = read(usage.drain())
    assert found == {"sales": {PLAIN: [5], VARIED: [7]}, "load": {PLAIN: [4]}, "time": {PLAIN: [3.5, 3, 1, 2]}}
    assert (usage.drain(), usage.entries, usage.full) == (None, 0, 0)


def test_a_gauge_that_is_merged_late_stays_what_it_was() -> None:
    """A post that failed has an older value than what was measured since, and does not bring it back."""
    usage = counters()
    usage.add_impact(sample(LOAD, 1))
    lost = usage.drain()
    usage.add_impact(sample(LOAD, 2))
    assert lost is not None
    usage.merge(lost)
    later = usage.drain()
    assert read(later) == {"load": {PLAIN: [2]}}
    assert later is not None
    usage.merge(lost)
    usage.merge(later)
    assert read(usage.drain()) == {"load": {PLAIN: [2]}}


def test_a_sum_has_an_end() -> None:
    """It stays a number that every reader of JSON keeps exactly."""
    held = [MAX_NUMBER - 1]
    combine("counter", held, [5.0])
    assert held == [MAX_NUMBER]


LONG = "x" * (MAX_TEXT + 1)
REFUSED = {
    "no name": sample(ImpactKey("", "counter", ()), 1),
    "a long name": sample(ImpactKey(LONG, "counter", ()), 1),
    "no help": sample(SALES, 1)._replace(help=""),
    "a long label": sample(SALES, 1, labels=((LONG, "x"),)),
    "a long value of a label": sample(SALES, 1, labels=(("x", LONG),)),
    "many labels": sample(SALES, 1, labels=tuple((f"l{number:02}", "x") for number in range(MAX_LABELS + 1))),
    "many buckets": sample(ImpactKey("t", "histogram", tuple(map(float, range(MAX_BOUNDS + 1)))), 1, 1),
    "a counter that falls": sample(SALES, -1),
    "a large number": sample(SALES, MAX_NUMBER + 1),
    "infinity": sample(LOAD, float("inf")),
    "no number": sample(LOAD, float("nan")),
    "a negative count": sample(TIME, 1, -1, 0, 0),
    "a negative bucket": sample(TIME, 1, 1, -1, 0),
    "a large bound": sample(ImpactKey("t", "histogram", (1e300,)), 1, 1, 1),
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED)
def test_what_the_upstream_would_not_take(wrong: ImpactSample) -> None:
    """It is left out and counted: for one such sample, the real server drops all impact metrics of a post."""
    usage = counters()
    usage.add_impact(wrong)
    assert (usage.full, usage.entries, usage.drain()) == (1, 0, None)


def test_what_it_takes() -> None:
    """Up to the bounds; gauges and the sum of a histogram may be negative."""
    usage = counters()
    usage.add_impact(sample(LOAD, -MAX_NUMBER))
    usage.add_impact(sample(TIME, -2.5, 0, 0, 0))
    name = "x" * MAX_TEXT
    usage.add_impact(sample(ImpactKey(name, "counter", ()), MAX_NUMBER, labels=((name, name),)))
    assert (usage.full, usage.entries) == (0, 3)


def test_one_metric_has_a_limited_number_of_label_sets() -> None:
    """Further ones are left out and counted; known ones still add up, and other metrics have their own."""
    usage = counters(10_000, 10_000_000)
    for number in range(MAX_LABEL_SETS + 3):
        usage.add_impact(sample(SALES, 1, labels=(("user", str(number)),)))
    usage.add_impact(sample(SALES, 1, labels=(("user", "0"),)))
    usage.add_impact(sample(LOAD, 1))
    assert (usage.full, usage.entries) == (3, MAX_LABEL_SETS + 1)
    assert read(usage.drain())["sales"][("user", "0"),] == [2]


@pytest.mark.parametrize(("max_entries", "max_bytes"), [(2, 1_000_000), (1000, 330)])
def test_they_share_the_room_of_the_counts(max_entries: int, max_bytes: int) -> None:
    """A sample takes the room of an entry, in numbers and in bytes; the bound holds after merging and draining as well."""
    usage = counters(max_entries, max_bytes)
    usage.count("a", True)
    usage.add_impact(sample(SALES, 1))
    usage.add_impact(sample(LOAD, 1))
    usage.add_impact(sample(SALES, 1))
    assert (usage.full, usage.entries) == (1, 2)
    sent = usage.drain()
    assert sent is not None and read(sent) == {"sales": {PLAIN: [2]}}
    usage.add_impact(sample(LOAD, 1), SHOP)
    usage.add_impact(sample(TIME, 1, 1, 1, 1), SHOP)
    before = usage.full
    usage.merge(sent)
    assert usage.entries == 2 and usage.full > before


def test_the_bytes_are_about_those_of_a_post() -> None:
    """A post is not larger than the estimate, and more than a third of it."""
    usage = counters(max_bytes=50_000)
    number = 0
    while not usage.full:
        number += 1
        labels = (("appName", "shop"), ("number", str(number)))
        usage.add_impact(sample(SALES, MAX_NUMBER, labels=labels))
        usage.add_impact(sample(TIME, 1 / 3, MAX_NUMBER, MAX_NUMBER, MAX_NUMBER, labels=labels))
    bucket = usage.drain()
    assert bucket is not None
    body = json.dumps(metrics_body(Identity("", "", ""), bucket)["impactMetrics"], separators=(",", ":"))
    assert 50_000 / 3 < len(body) < 50_000
