"""The metrics beside the specification's, as prometheus_client writes them (behaviour: Metrics endpoint).

Imported with the first scrape; `samples` has the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flagsvc.proxy.api.samples import KEPT, SERVED, Key, Labels, MetricRow, Sources


class Families(Collector):
    """The metrics of one scrape: the rows, and what the operating system says of the processes."""

    def __init__(self, sources: Sources, served: Mapping[Key, float], processes: Iterable[Metric]) -> None:
        self._sources = sources
        self._processes = processes
        self._served: dict[str, dict[Labels, float]] = {}
        for (name, *labels), value in served.items():
            self._served.setdefault(name, {})[tuple(labels)] = value

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        yield from self._processes
        for row in filter(self._shown, KEPT):
            yield family(row, row.read(self._sources))
        for row in filter(self._shown, SERVED):
            yield family(row, self._served.get(row.name, {}))

    def _shown(self, row: MetricRow) -> bool:
        return self._sources.private or not row.private


def family(row: MetricRow, values: Mapping[Labels, float]) -> Metric:
    """Return a row with its numbers as prometheus_client writes it."""
    made = (CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily)(row.name, row.help, labels=row.labels)
    for labels, value in values.items():
        made.add_metric(labels, value)
    return made


def this_process() -> Iterable[Metric]:
    """Return what the operating system says of this process."""
    return ProcessCollector(registry=None).collect()


def text(sources: Sources, served: Mapping[Key, float], processes: Iterable[Metric] | None) -> bytes:
    """Return the metrics in Prometheus text format; see `prometheus.exposition`."""
    return generate_latest(Families(sources, served, this_process() if processes is None else processes))
