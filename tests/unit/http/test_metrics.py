"""Metric rows, and the text that they make: one writer for both programs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from flagsvc.http.counts import BOUNDS, Histogram
from flagsvc.http.metric_families import bare_lines, exposition
from flagsvc.http.metrics import BUCKETS, HISTOGRAM, Labels, Measured, MetricRow, by_bucket, measure, prefers_open_metrics
from support import forms

ENV = {**os.environ, "PYTHONPATH": str(forms.SOURCES)}
BARE = MetricRow[int]("up", "counter", "1 while it runs.", lambda source: {(): source}, bare=True)
COUNTER = MetricRow[int]("seen", "counter", "What was seen.", lambda source: {("a",): source}, ("kind",))
GAUGE = MetricRow[int]("size", "gauge", "How large it is.", lambda source: {(): source / 2})
ABSENT = MetricRow[int]("gone", "gauge", "Cannot be told.", lambda _: None)
EMPTY = MetricRow[int]("empty", "gauge", "Has no numbers yet.", lambda _: {})


def test_the_text() -> None:
    """Bare rows come first, then the operating system's figures, then the others. A counter gets its suffix."""
    processes = [GaugeMetricFamily("process_threads", "Threads.", 3)]
    assert exposition(measure([COUNTER, GAUGE, BARE, ABSENT, EMPTY], 5), processes).decode().splitlines() == [
        "# HELP up 1 while it runs.",
        "# TYPE up counter",
        "up 5",
        "# HELP process_threads Threads.",
        "# TYPE process_threads gauge",
        "process_threads 3.0",
        "# HELP seen_total What was seen.",
        "# TYPE seen_total counter",
        'seen_total{kind="a"} 5.0',
        "# HELP size How large it is.",
        "# TYPE size gauge",
        "size 2.5",
        "# HELP empty Has no numbers yet.",
        "# TYPE empty gauge",
    ]


@pytest.mark.parametrize(("value", "shown"), [(0.0, "0"), (1700000000123.0, "1700000000123"), (1700000000123.9, "1700000000123")])
def test_a_bare_row_is_three_lines(value: float, shown: str) -> None:
    """Help, type, value; milliseconds are whole, as the reference writes them."""
    row = Measured("name", "gauge", "What it is.", (), True, {(): value})
    assert bare_lines(row) == ["# HELP name What it is.", "# TYPE name gauge", f"name {shown}"]


def test_the_text_of_open_metrics() -> None:
    """All samples have the names that they have as plain text. A bare counter has no suffix, so it is of no known kind."""
    shown = exposition(measure([COUNTER, GAUGE, BARE], 5), [], is_open=True).decode().splitlines()
    assert shown[-1] == "# EOF"
    assert [line for line in shown if "# TYPE" in line] == ["# TYPE seen counter", "# TYPE size gauge", "# TYPE up unknown"]
    assert [line for line in shown if "#" not in line] == ['seen_total{kind="a"} 5.0', "size 2.5", "up 5.0"]


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.floats(0, 1e6), max_size=9), min_size=1), st.booleans())
def test_the_laws_of_a_histogram(durations: dict[str, list[float]], is_open: bool) -> None:
    """Buckets grow with their bounds, the last bucket is the count, and the sum is that of all, for each label, in both forms."""
    histograms: dict[Labels, Histogram] = {(label,): Histogram() for label in durations}
    for label, values in durations.items():
        for each in values:
            histograms[label,].add(each)
    row = MetricRow[int]("took", HISTOGRAM, "How long it took.", lambda _: by_bucket(histograms), ("what",))
    read = read_open_metrics if is_open else read_text
    [family] = read(exposition(measure([row], 0), [], is_open=is_open).decode())
    found = {(each.name, each.labels["what"], each.labels.get("le", "")): each.value for each in family.samples}
    for label, values in durations.items():
        if not values:
            assert not [key for key in found if key[1] == label]
            continue
        buckets = [found["took_bucket", label, bucket] for bucket in BUCKETS]
        assert buckets == [*(sum(each <= bound for each in values) for bound in BOUNDS), len(values)]
        assert found["took_count", label, ""] == len(values)
        assert found["took_sum", label, ""] == pytest.approx(sum(values)) and found["took_sum", label, ""] >= 0


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, False),
        (b"*/*", False),
        (b"text/plain", False),
        (b"application/openmetrics-text", True),
        (b"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5", True),
        (b"text/plain, application/openmetrics-text;q=0.5", False),
        (b"application/openmetrics-text;q=0", False),
        (b"application/openmetrics-text;q=x", False),
    ],
)
def test_when_open_metrics_is_asked_for(accept: bytes | None, expected: bool) -> None:
    """It must be named, and plain text must not be preferred."""
    assert prefers_open_metrics(accept) is expected


def test_the_library_is_imported_with_the_first_scrape() -> None:
    """It is two megabytes that a process without a scrape does not need."""
    modules = "flagsvc.http.metrics, flagsvc.proxy.api.metrics, flagsvc.server.api.routes"
    script = f"import sys, {modules}; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60, env=ENV).returncode == 0
