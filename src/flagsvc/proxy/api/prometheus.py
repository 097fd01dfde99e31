"""The metrics endpoint (specification: GET /proxy/internal-backstage/prometheus; behaviour: Metrics endpoint).

`samples` has the rows; here is who answers, and how the specification's samples are written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.messages import Response
from flagsvc.proxy.api.answers import ASK_AGAIN, Answers, FixedHeaders
from flagsvc.proxy.api.samples import SPECIFIED, Key, Sample, Sources, readings

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

FetchMetrics: TypeAlias = Callable[[], Awaitable[bytes]]
"""Gives the text of all processes; raises Refused."""


def exposition(sources: Sources, served: Mapping[Key, float], processes: Iterable[Metric] | None = None) -> bytes:
    """Return the text: the specification's samples first, then the others. `served` has the numbers of the rows of SERVED.

    `processes` is what the operating system says of the processes; of this one where it is None.
    """
    from flagsvc.proxy.api.families import text  # with the first scrape: prometheus_client is two megabytes

    lines = [line for sample in SPECIFIED for line in written(sample, sample.read(sources))]
    return "".join(f"{line}\n" for line in lines).encode() + text(sources, served, processes)


class Prometheus(Handler):
    """GET /proxy/internal-backstage/prometheus: of this process, or of all where that is known `fetch_metrics`."""

    def __init__(self, sources: Sources, answers: Answers, fetch_metrics: FetchMetrics | None = None) -> None:
        self.sources = sources
        self.answers = answers
        self.fetch_metrics = fetch_metrics
        self.shape: FixedHeaders = answers.shape(CONTENT_TYPE, ASK_AGAIN)

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return every metric in Prometheus text format."""
        if self.fetch_metrics is not None:
            return self.later(call, self.fetch_metrics)
        text = exposition(self.sources, readings(self.sources))
        return self.answers.seal(self.shape, call, text)

    async def later(self, call: Call, fetch_metrics: FetchMetrics) -> Response:
        """Return the same of all processes; raises Refused (503) where that cannot be had."""
        return self.answers.seal(self.shape, call, await fetch_metrics())


def written(sample: Sample, value: float) -> list[str]:
    """Return the lines of one metric of the specification: all of them are whole numbers."""
    return [
        f"# HELP {sample.name} {sample.help}",
        f"# TYPE {sample.name} {sample.kind}",
        f"{sample.name} {int(value)}",
    ]
