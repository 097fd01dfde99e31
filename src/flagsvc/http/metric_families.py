"""Metric rows in Prometheus text format. Import this module with the first scrape: prometheus_client takes two megabytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flagsvc.http.metrics import Labels, Measured


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
    """Return a row as a metric family of prometheus_client."""
    made = (CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily)(row.name, row.help, labels=row.labels)
    for labels, value in row.values.items():
        made.add_metric(labels, value)
    return made


def this_process() -> Iterable[Metric]:
    """Return the operating system's figures of this process."""
    return ProcessCollector(registry=None).collect()


def this_collector() -> Iterable[Metric]:
    """Return the figures of this process's garbage collector."""
    registry = CollectorRegistry(auto_describe=False)
    GCCollector(registry)
    return registry.collect()


def exposition(rows: Iterable[Measured], processes: Iterable[Metric]) -> bytes:
    """Return the text: first the bare rows, then `processes`, then the others.

    `processes` are the operating system's figures of the processes.
    """
    found = list(rows)
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
