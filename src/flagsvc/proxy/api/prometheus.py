"""The proxy's metrics endpoint (specification: GET /proxy/internal-backstage/prometheus; behaviour: Metrics endpoint)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.messages import Response
from flagsvc.http.metrics import CONTENT_TYPE, Key, Labels, measure, measured
from flagsvc.proxy.api.answers import ASK_AGAIN, Answers, ResponseHeaders
from flagsvc.proxy.api.samples import KEPT, SERVED, SPECIFIED, divided, readings
from flagsvc.proxy.api.sources import Sources

if TYPE_CHECKING:
    from prometheus_client import Metric

FetchMetrics: TypeAlias = Callable[[], Awaitable[bytes]]
"""Returns the metrics of all processes as text. Raises HttpError."""


def exposition(sources: Sources, served: Mapping[Key, float], processes: Iterable[Metric] | None = None) -> bytes:
    """Return the text: first the specification's samples, then the others. `served` has the numbers of the rows of SERVED.

    `processes` are the operating system's figures of the processes; None for those of this process.
    """
    from flagsvc.http import metric_families  # with the first scrape: it takes two megabytes

    if processes is None:
        processes = metric_families.this_process()
    numbers = by_row(served)
    rows = [row for row in (*SPECIFIED, *KEPT) if sources.private or not row.private]
    kept = measure(divided(rows, sources), sources)
    shown = divided([row for row in SERVED if sources.private or not row.private], sources)
    return metric_families.exposition([*kept, *(measured(row, numbers.get(row.name, {})) for row in shown)], processes)


def by_row(readings: Mapping[Key, float]) -> dict[str, dict[Labels, float]]:
    """Return the numbers of each row by its name."""
    found: dict[str, dict[Labels, float]] = {}
    for (name, *labels), value in readings.items():
        found.setdefault(name, {})[tuple(labels)] = value
    return found


class Prometheus(Handler):
    """GET /proxy/internal-backstage/prometheus: the metrics of this process, or of all processes with `fetch_metrics`."""

    def __init__(self, sources: Sources, answers: Answers, fetch_metrics: FetchMetrics | None = None) -> None:
        self.sources = sources
        self.answers = answers
        self.fetch_metrics = fetch_metrics
        self.headers: ResponseHeaders = answers.headers(CONTENT_TYPE.encode(), ASK_AGAIN)

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return every metric in Prometheus text format."""
        if self.fetch_metrics is not None:
            return self.later(call, self.fetch_metrics)
        text = exposition(self.sources, readings(self.sources))
        return self.answers.respond(self.headers, call, text)

    async def later(self, call: Call, fetch_metrics: FetchMetrics) -> Response:
        """Return the metrics of all processes. Raises HttpError (503) if the other processes cannot be asked."""
        return self.answers.respond(self.headers, call, await fetch_metrics())
