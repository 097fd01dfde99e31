"""Metric rows as text, for Prometheus or as OpenMetrics. Import this module with the first scrape, in a thread: prometheus_client
takes two megabytes, and 40 ms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest as generate_open_metrics
from prometheus_client.registry import Collector

from flagsvc.http.metrics import BUCKETS, COUNTER, HISTOGRAM, SUM, Labels, Measured, by_labels


class Families(Collector):
    """The metrics of one scrape: the operating system's figures of the processes, then the rows."""

    def __init__(self, rows: Iterable[Measured], processes: Iterable[Metric]) -> None:
        self._rows = rows
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        yield from self._processes
        for row in self._rows:
            yield family(row)


def family(row: Measured) -> Metric:
    """Return a row as a metric family of prometheus_client. A bare counter has no suffix, so OpenMetrics has no kind for it."""
    if row.kind == HISTOGRAM:
        return histogram_family(row)
    kinds = {COUNTER: UnknownMetricFamily if row.bare else CounterMetricFamily}
    made = kinds.get(row.kind, GaugeMetricFamily)(row.name, row.help, labels=row.labels)
    for labels, value in row.values.items():
        made.add_metric(labels, value)
    return made


def histogram_family(row: Measured) -> Metric:
    """Return a row of a histogram as a metric family. Each bucket counts those before it, too."""
    made = HistogramMetricFamily(row.name, row.help, labels=row.labels)
    for labels, found in by_labels(row).items():
        counted = accumulate(found.get(bucket, 0.0) for bucket in BUCKETS)
        made.add_metric(labels, list(zip(BUCKETS, counted, strict=True)), found.get(SUM, 0.0))
    return made


def this_process() -> Iterable[Metric]:
    """Return the operating system's figures of this process."""
    return ProcessCollector(registry=None).collect()


def this_collector() -> Iterable[Metric]:
    """Return the figures of this process's garbage collector."""
    registry = CollectorRegistry(auto_describe=False)
    GCCollector(registry)
    return registry.collect()


def exposition(rows: Iterable[Measured], processes: Iterable[Metric], *, is_open: bool = False) -> bytes:
    """Return the text: first the bare rows, then `processes`, then the others. `is_open` asks for OpenMetrics.

    `processes` are the operating system's figures of the processes.
    """
    found = list(rows)
    if is_open:
        text: bytes = generate_open_metrics(Families(found, processes))  # type: ignore[no-untyped-call]
        return text
    lines = [line for row in found if row.bare for line in bare_lines(row)]
    others = Families([row for row in found if not row.bare], processes)
    return "".join(f"{line}\n" for line in lines).encode() + generate_latest(others)


def bare_lines(row: Measured) -> list[str]:
    return [
        f"# HELP {row.name} {row.help}",
        f"# TYPE {row.name} {row.kind}",
        *(f"{row.name}{label_text(row, labels)} {int(value)}" for labels, value in row.values.items()),
    ]


def label_text(row: Measured, labels: Labels) -> str:
    """Return the labels of a sample as text; empty if it has none. The values are words that need no escapes."""
    pairs = ",".join(f'{name}="{value}"' for name, value in zip(row.labels, labels, strict=True))
    return f"{{{pairs}}}" if pairs else ""
