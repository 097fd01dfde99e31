"""A collector of OpenTelemetry for tests: it decodes what comes over OTLP, and can refuse, or keep callers waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.http_servers import Reply, Request, http_server


@dataclass(frozen=True)
class TakenSpan:
    """A span that came: ids in hexadecimal, empty without a parent; `service` is the name of the service that it is of."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    is_error: bool
    seconds: float


def attributes(pairs: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in pairs}


@dataclass
class Collector:
    """What has come: the `bodies` and headers, `spans`, and the last reading of the `metrics` by name and service.

    It answers with `status`, when `may_answer` is set.
    """

    url: str = ""
    status: int = 200
    spans: list[TakenSpan] = field(default_factory=list)
    metrics: dict[tuple[str, str], Any] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def answer(self, request: Request) -> Reply:
        if not self.may_answer.wait(30):
            return Reply(503)
        self.bodies.append(request.body)
        self.headers.append(request.headers)
        if self.status == 200 and request.path == "/v1/traces":
            self.spans += read_spans(request.body)
        elif self.status == 200 and request.path == "/v1/metrics":
            self.metrics |= read_metrics(request.body)
        return Reply(self.status, b"", {"Content-Type": "application/x-protobuf"})

    def named(self, *names: str) -> list[TakenSpan]:
        return [span for span in self.spans if span.name in names]

    def points(self, name: str, service: str = "flagsvc-proxy") -> dict[tuple[str, ...], Any]:
        """Return the points of a metric by the values of their labels; none if it has not come."""
        found = self.metrics.get((name, service))
        points = () if found is None else getattr(found, found.WhichOneof("data")).data_points
        return {tuple(attributes(each.attributes).values()): each for each in points}

    def numbers(self, name: str, service: str = "flagsvc-proxy") -> dict[tuple[str, ...], float]:
        """Return the numbers of a counter or of present values by the values of their labels."""
        return {labels: each.as_double or each.as_int for labels, each in self.points(name, service).items()}


def read_spans(body: bytes) -> list[TakenSpan]:
    return [
        TakenSpan(
            attributes(group.resource.attributes)["service.name"],
            span.name,
            Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            attributes(span.attributes),
            span.status.code == 2,
            (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        )
        for group in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def read_metrics(body: bytes) -> dict[tuple[str, str], Any]:
    """Return the metrics of a request by name and service."""
    return {
        (metric.name, attributes(group.resource.attributes)["service.name"]): metric
        for group in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in group.scope_metrics
        for metric in scope.metrics
    }


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    collector.may_answer.set()
    with http_server(collector.answer) as url:
        collector.url = url
        try:
            yield collector
        finally:
            collector.may_answer.set()


def variables(collector: Collector, **more: str) -> dict[str, Any]:
    """Return the variables with which a program sends there at once."""
    quick = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "100"}
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **quick, **more}
