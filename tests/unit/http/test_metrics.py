"""Metric rows, and the text that they make: one writer for both programs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from prometheus_client.core import GaugeMetricFamily

from flagsvc.http.metric_families import bare_lines, exposition, label_text
from flagsvc.http.metrics import Measured, MetricRow, measure
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


def test_a_bare_row_with_labels() -> None:
    """Each sample has its labels, in the order of the row."""
    row = Measured("name", "gauge", "What it is.", ("one", "two"), True, {("a", "b"): 1, ("c", "d"): 2.5})
    assert bare_lines(row)[2:] == ['name{one="a",two="b"} 1', 'name{one="c",two="d"} 2']
    assert [label_text(row, ("a", "b")), label_text(row._replace(labels=()), ())] == ['{one="a",two="b"}', ""]


def test_the_library_is_imported_with_the_first_scrape() -> None:
    """It is two megabytes that a process without a scrape does not need."""
    modules = "flagsvc.http.metrics, flagsvc.proxy.api.metrics, flagsvc.server.api.routes"
    script = f"import sys, {modules}; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60, env=ENV).returncode == 0
