"""Our rows and spans as OpenTelemetry's."""

from __future__ import annotations

from random import Random

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource

from flagsvc.core.tracing import CLIENT, Tracer
from flagsvc.http.counts import Histogram
from flagsvc.http.metrics import COUNTER, GAUGE, HISTOGRAM, Measured, by_bucket
from flagsvc.process.otlp import as_data, readable
from support.collector import attributes, read_metrics, read_spans

RESOURCE = Resource({"service.name": "here"})


def test_the_kinds_of_rows() -> None:
    """A counter is a sum that only grows, a gauge a present value without NaN, and a histogram has our buckets."""
    durations = Histogram()
    for seconds in (0.00005, 0.0003, 0.0003, 60.0):
        durations.add(seconds)
    rows = [
        Measured("a_bytes", COUNTER, "A.", ("route",), False, {("/x",): 5.0}),
        Measured("b_seconds", GAUGE, "B.", (), False, {(): float("nan")}),
        Measured("c_seconds", HISTOGRAM, "C.", ("route",), False, by_bucket({("/x",): durations})),
        Measured("d", GAUGE, "D.", (), False, {}),
    ]
    found = read_metrics(encode_metrics(as_data(rows, RESOURCE, 1, 2)).SerializeToString())
    assert {name for name, _ in found} == {"a_bytes", "b_seconds", "c_seconds"}
    a, b, c = (found[name, "here"] for name in ("a_bytes", "b_seconds", "c_seconds"))
    assert (a.unit, a.description, a.sum.is_monotonic, a.sum.aggregation_temporality) == ("By", "A.", True, 2)
    [point] = a.sum.data_points
    assert (attributes(point.attributes), point.as_double) == ({"route": "/x"}, 5.0)
    assert (point.start_time_unix_nano, point.time_unix_nano) == (1, 2)
    assert b.unit == "s" and not b.gauge.data_points
    [point] = c.histogram.data_points
    assert (point.count, list(point.bucket_counts)) == (4, [1, 0, 2, *[0] * 13, 1])
    assert abs(point.sum - 60.00065) < 1e-9 and not point.HasField("min") and not point.HasField("max")


def test_a_span() -> None:
    """Ids, parent, kind, times, attributes and failure of a span are those of ours."""
    tracer = Tracer(Random(1), 1.0, follows_parent=True, room=1, batch=1, on_batch=lambda: None)
    ours = tracer.begin("work", CLIENT, b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    assert ours is not None
    ours.note_status(503, 500)
    ours.end()
    [found] = read_spans(encode_spans([readable(ours, RESOURCE)]).SerializeToString())
    assert (found.name, found.kind, found.is_error) == ("work", CLIENT, True)
    assert (found.trace, found.id, found.parent) == (f"{ours.trace:032x}", f"{ours.id:016x}", "00f067aa0ba902b7")
    assert found.attributes == {"http.response.status_code": 503, "error.type": "503"}
    assert abs(found.seconds - (ours.ended - ours.began) / 1e9) < 1e-6
