"""Impact metrics in the reports of applications and browsers."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.reports import IMPACT_METRIC
from flagsvc.http.shapes.checking import check
from flagsvc.http.shapes.violation import ShapeError
from flagsvc.proxy.api.impact import MAX_HELP, add_reported, read_samples
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageCounters, UsageSource
from flagsvc.testing import FakeClock
from support.serving import Serving

SHOP = UsageSource("shop", "one")
COUNTER: dict[str, Any] = {"name": "sales", "help": "Sales.", "type": "counter", "samples": [{"labels": {"a": "b"}, "value": 2}]}
BUCKETS = [{"le": 0.5, "count": 1}, {"le": 5, "count": 2}, {"le": "+Inf", "count": 3}]
HISTOGRAM: dict[str, Any] = {
    "name": "time",
    "help": "Time.",
    "type": "histogram",
    "samples": [{"labels": {}, "count": 3, "sum": 7.5, "buckets": BUCKETS}],
}


def changed(metric: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a metric whose sample has these members; None removes one."""
    merged = {**metric["samples"][0], **changes}
    return metric | {"samples": [{name: value for name, value in merged.items() if value is not None}]}


def read(metric: object) -> list[ImpactSample]:
    """Return the samples of a metric. Raises ShapeError."""
    found: Any = check(IMPACT_METRIC, copy.deepcopy(metric))
    return read_samples(found)


def counters() -> UsageCounters:
    return UsageCounters(dict, FakeClock().now)


@pytest.mark.parametrize(
    ("metric", "labels", "values"),
    [
        (COUNTER, (("a", "b"),), [2.0]),
        (COUNTER | {"type": "gauge"}, (("a", "b"),), [2.0]),
        (changed(COUNTER, value="2.5"), (("a", "b"),), [2.5]),
        (changed(COUNTER, labels=None), (), [2.0]),
        (changed(COUNTER, labels={"b": 5, "a": 1.5, "c": True}), (("a", "1.5"), ("b", "5"), ("c", "true")), [2.0]),
        (changed(COUNTER, labels={"a": "", "": "x", "b": "y"}), (("b", "y"),), [2.0]),
        (changed(COUNTER, more=7), (("a", "b"),), [2.0]),
    ],
)
def test_counters_and_gauges(metric: dict[str, Any], labels: Any, values: list[float]) -> None:
    """Labels are sorted, and numbers become texts. An empty label is left out: the real server refuses it."""
    assert read(metric) == [ImpactSample(ImpactKey("sales", metric["type"], ()), "Sales.", labels, values)]


@pytest.mark.parametrize(
    ("metric", "bounds", "values"),
    [
        (HISTOGRAM, (0.5, 5.0), [7.5, 3, 1, 2]),
        (changed(HISTOGRAM, buckets=BUCKETS[::-1]), (0.5, 5.0), [7.5, 3, 1, 2]),
        (changed(HISTOGRAM, buckets=BUCKETS[:2]), (0.5, 5.0), [7.5, 3, 1, 2]),
        (changed(HISTOGRAM, buckets=[*BUCKETS, BUCKETS[0]]), (0.5, 5.0), [7.5, 3, 2, 2]),
        (changed(HISTOGRAM, buckets=[{"le": "0.5", "count": "1"}]), (0.5,), [7.5, 3, 1]),
        (changed(HISTOGRAM, buckets=[]), (), [7.5, 3]),
    ],
)
def test_histograms(metric: dict[str, Any], bounds: tuple[float, ...], values: list[float]) -> None:
    """Buckets are sorted. The last bucket counts everything, also if it is missing."""
    assert read(metric) == [ImpactSample(ImpactKey("time", "histogram", bounds), "Time.", (), values)]


def test_a_long_help_is_cut() -> None:
    """It only describes the metric."""
    [sample] = read(COUNTER | {"help": "x" * 1000})
    assert sample.help == "x" * MAX_HELP


@pytest.mark.parametrize(
    ("metric", "place"),
    [
        ({}, "/body"),
        (COUNTER | {"name": []}, "/body/name"),
        (COUNTER | {"type": "summary"}, "/body/type"),
        (COUNTER | {"samples": {}}, "/body/samples"),
        (changed(COUNTER, value="x"), "/body/samples/0/value"),
        (changed(COUNTER, value=None), "/body/samples/0"),
        (changed(COUNTER, labels={"a": {}}), "/body/samples/0/labels/a"),
        (COUNTER | {"type": "histogram"}, "/body/samples/0"),
        (HISTOGRAM | {"type": "counter"}, "/body/samples/0"),
        (changed(HISTOGRAM, sum=None), "/body/samples/0"),
        (changed(HISTOGRAM, buckets=[{"le": "Inf", "count": 1}]), "/body/samples/0/buckets/0/le"),
        (changed(HISTOGRAM, buckets=[{"le": 1}]), "/body/samples/0/buckets/0"),
    ],
)
def test_malformed_ones(metric: object, place: str) -> None:
    """The error names the place."""
    with pytest.raises(ShapeError) as refused:
        read(metric)
    assert refused.value.problem[0] == place


def test_a_malformed_one_does_not_take_others_with_it() -> None:
    """It is left out and counted. A value that is no list counts as one malformed metric, and a missing value as no metric."""
    usage = counters()
    add_reported(usage, {"impactMetrics": [7, copy.deepcopy(COUNTER), {}]}, SHOP)
    [bucket] = usage.peek_sources()
    assert (bucket.source, [key.name for key in bucket.impact], usage.malformed) == (SHOP, ["sales"], 2)
    for value, malformed in (("x", 1), (copy.deepcopy(COUNTER), 1), ([], 0), (None, 0)):
        usage = counters()
        add_reported(usage, {"impactMetrics": value}, SHOP)
        assert (usage.entries, usage.malformed) == (0, malformed)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just("+Inf")),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=4,
)
SAMPLES = st.dictionaries(st.sampled_from(["labels", "value", "count", "sum", "buckets"]), VALUES)


@given(
    st.fixed_dictionaries(
        {"name": st.just("n"), "help": VALUES, "type": st.sampled_from(["counter", "gauge", "histogram"])},
        optional={"samples": st.lists(SAMPLES, max_size=2) | VALUES},
    )
)
def test_anything_is_read_or_left_out(metric: dict[str, Any]) -> None:
    """For any value there is no error."""
    add_reported(counters(), {"impactMetrics": [metric]}, SHOP)


def report(serving: Serving, *metrics: object, path: bytes = b"/api/frontend/client/metrics") -> None:
    bucket = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {}}
    body = json.dumps({"appName": "web", "instanceId": "browser", "bucket": bucket, "impactMetrics": metrics}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    assert serving.ask(b"POST", path, headers=headers, body=body).status == 200


@pytest.mark.parametrize("api", [b"/proxy", b"/proxy/all", b"/api/frontend", b"/api/frontend/all", b"/api/proxy"])
def test_browsers_may_report_what_is_allowed(api: bytes) -> None:
    """Only metrics that the option names are taken, as the proxy's own. Without the option there are none."""
    path = api + b"/client/metrics"
    serving = Serving(impact_metrics=("sales", "7"))
    report(serving, COUNTER | {"name": "other"}, 7, COUNTER | {"samples": 7}, COUNTER, COUNTER | {"name": []}, path=path)
    [(key, series)] = serving.usage.peek().impact.items()
    assert (key.name, list(series.samples.values())) == ("sales", [[2.0]])
    assert (serving.usage.peek_sources(), serving.usage.malformed) == ([], 0)
    closed = Serving()
    report(closed, COUNTER, path=path)
    assert closed.usage.entries == 0


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ({}, {}),
        ({"known": "enabled"}, {"known": "enabled"}),
        ({"known": "disabled", "varied": "blue"}, {"known": "disabled", "varied": "blue"}),
        ({"known": "someone@example.com", "varied": "green"}, {}),
        ({"someone@example.com": "enabled", "unknown": "enabled"}, {}),
        ({"appName": "someone@example.com", "environment": "x", "origin": "y"}, {}),
    ],
)
def test_labels_of_browsers(labels: dict[str, str], kept: dict[str, str]) -> None:
    """Only states of flags that the configuration knows are kept: no text of a page goes upstream."""
    serving = Serving(impact_metrics=("sales",), app_name="us", upstream_environment="production")
    serving.snapshot.names["varied"] = frozenset({"blue"})
    report(serving, changed(COUNTER, labels=labels))
    [series] = serving.usage.peek().impact.values()
    [found] = series.samples
    assert dict(found) == {**kept, "appName": "us", "environment": "production"}
    assert list(found) == sorted(found)
