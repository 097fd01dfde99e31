"""Metric rows as prometheus_client writes them. Imported with the first scrape; `metrics` says what a row is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flagsvc.http.metrics import Measured


class Families(Collector):
    """The metrics of one scrape: what the operating system says of the processes, then the rows."""

    def __init__(self, rows: Iterable[Measured], processes: Iterable[Metric]) -> None:
        self._rows = rows
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        yield from self._processes
        for row in self._rows:
            yield family(row)


def family(row: Measured) -> Metric:
    """Return a row as prometheus_client writes it."""
    made = (CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily)(row.name, row.help, labels=row.labels)
    for labels, value in row.values.items():
        made.add_metric(labels, value)
    return made


def this_process() -> Iterable[Metric]:
    """Return what the operating system says of this process."""
    return ProcessCollector(registry=None).collect()


def this_collector() -> Iterable[Metric]:
    """Return what Python says of its garbage collector in this process."""
    registry = CollectorRegistry(auto_describe=False)
    GCCollector(registry)
    return registry.collect()


def text(rows: Iterable[Measured], processes: Iterable[Metric]) -> bytes:
    """Return rows and what the operating system says in Prometheus text format."""
    return generate_latest(Families(rows, processes))
