"""Our spans and rows of metrics as OpenTelemetry's, to its OTLP exporters. Import it only where they are asked for.

The exporters read OTEL_EXPORTER_OTLP_* themselves, and the resource OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from flagsvc.core.tracing import METRICS, SPANS, Span
from flagsvc.core.version import VERSION
from flagsvc.http.counts import BOUNDS
from flagsvc.http.metrics import BUCKETS, COUNTER, HISTOGRAM, SUM, Labels, Measured, by_labels

EXPORTERS = {SPANS: ("trace_exporter", "OTLPSpanExporter"), METRICS: ("metric_exporter", "OTLPMetricExporter")}
"""Signal → the module and the class of its exporter in the package of a protocol."""
UNITS = {"seconds": "s", "bytes": "By"}
"""The last word of a metric's name → its unit."""
SCOPE = InstrumentationScope("flagsvc", VERSION)
TRACED = TraceFlags(TraceFlags.SAMPLED)
CUMULATIVE = AggregationTemporality.CUMULATIVE


def make_resource(service: str) -> Resource:
    """Return what describes this process: the variables' attributes, and ours where the variables have none."""
    own = {"service.name": service, "service.version": VERSION}
    given = OTELResourceDetector().detect().attributes
    return Resource.create({name: value for name, value in own.items() if name not in given})


class OtlpSenders:
    """Sends to a collector with the exporter of each signal. `packages` has the package of its protocol, by signal."""

    def __init__(self, packages: Mapping[str, str], service: str) -> None:
        library = logging.getLogger("opentelemetry")
        library.propagate = False  # its lines quote what a collector answers; the metrics and our own lines tell of failures
        library.addHandler(logging.NullHandler())
        self._resource = make_resource(service)
        self._began = time.time_ns()
        self._exporters = {signal: make_exporter(package, signal) for signal, package in packages.items()}

    def send_spans(self, spans: Sequence[Span]) -> bool:
        """Send spans. Returns whether the collector has taken them."""
        found = [readable(span, self._resource) for span in spans]
        return bool(self._exporters[SPANS].export(found) is SpanExportResult.SUCCESS)

    def send_metrics(self, rows: Sequence[Measured]) -> bool:
        """Send one reading of the metrics. Returns whether the collector has taken it."""
        data = as_data(rows, self._resource, self._began, time.time_ns())
        return bool(self._exporters[METRICS].export(data) is MetricExportResult.SUCCESS)

    def close(self) -> None:
        """Give up what is being sent again, and send nothing more."""
        for exporter in self._exporters.values():
            exporter.shutdown()


def make_exporter(package: str, signal: str) -> Any:
    """Return the exporter of a signal, which reads its address, headers and limits from the variables."""
    module, name = EXPORTERS[signal]
    return getattr(import_module(f"{package}.{module}"), name)()


def readable(span: Span, resource: Resource) -> ReadableSpan:
    """Return a span in the form that exporters take."""
    parent = SpanContext(span.trace, span.parent, span.is_remote, TRACED) if span.parent else None
    attributes = span.attributes | ({"error.type": span.error} if span.error else {})
    return ReadableSpan(
        span.name,
        SpanContext(span.trace, span.id, is_remote=False, trace_flags=TRACED),
        parent,
        resource,
        attributes,
        kind=SpanKind[span.kind],
        status=Status(StatusCode.ERROR if span.error else StatusCode.UNSET),
        start_time=span.began,
        end_time=span.ended,
        instrumentation_scope=SCOPE,
    )


def as_data(rows: Iterable[Measured], resource: Resource, began: int, now: int) -> MetricsData:
    """Return rows in the form that exporters take. Their counts `began` at that moment; both are in nanoseconds since the epoch."""
    metrics = [metric(row, began, now) for row in rows if row.values]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(SCOPE, metrics, "")], "")])


def metric(row: Measured, began: int, now: int) -> Metric:
    """Return a row as a metric: a sum that only grows, a present value, or a histogram with our buckets."""
    unit = UNITS.get(row.name.rpartition("_")[2], "1")
    if row.kind == HISTOGRAM:
        return Metric(row.name, row.help, unit, Histogram(histogram_points(row, began, now), CUMULATIVE))
    points = [
        NumberDataPoint(attributes_of(row, labels), began, now, value)
        for labels, value in row.values.items()
        if not math.isnan(value)
    ]
    data = Sum(points, CUMULATIVE, is_monotonic=True) if row.kind == COUNTER else Gauge(points)
    return Metric(row.name, row.help, unit, data)


def histogram_points(row: Measured, began: int, now: int) -> list[HistogramDataPoint]:
    """Return a point for each tuple of labels. The shortest and the longest duration are not known."""
    found = []
    for labels, numbers in by_labels(row).items():
        counts = [int(numbers.get(bucket, 0)) for bucket in BUCKETS]
        unknown: Any = None
        total = numbers.get(SUM, 0.0)
        found.append(
            HistogramDataPoint(attributes_of(row, labels), began, now, sum(counts), total, counts, BOUNDS, min=unknown, max=unknown)
        )
    return found


def attributes_of(row: Measured, labels: Labels) -> dict[str, str]:
    return dict(zip(row.labels, labels, strict=True))
