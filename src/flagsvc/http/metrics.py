"""The rows of metrics for both programs, and their text in Prometheus format.

Label values are route templates, methods, statuses and our own words. They are never a path, header, key or name that a caller
sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from flagsvc.http.counts import BOUNDS, Histogram, StatusCounts, Traffic
from flagsvc.http.first_page import LONGEST, qualities
from flagsvc.http.streams import Streams

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
VARY = b"Accept"
"""The header that decides between the two."""

Labels: TypeAlias = tuple[str, ...]
Key: TypeAlias = tuple[str, ...]
"""The name of a row, and the values of its labels."""
Readings: TypeAlias = dict[Key, float]
"""One number for each sample."""

S = TypeVar("S")


class MetricRow(NamedTuple, Generic[S]):
    """One metric. `read` returns a number for each tuple of label values, or None if the metric is not known now.

    The name of a counter is given without the suffix `_total`, which the text adds. The numbers of a counter only grow while a
    process lives. Those of a histogram do as well: the last label value of each is a bucket or SUM, and `labels` does not name it.
    A `private` row would reveal the names of toggles, so it is written only if callers cannot read the metrics.
    A `bare` row is written first, as a whole number under its exact name. `place` is a program's own word for where the numbers
    come from.
    """

    name: str
    kind: str
    help: str
    read: Callable[[S], Mapping[Labels, float] | None]
    labels: Labels = ()
    private: bool = False
    bare: bool = False
    place: str = ""


class Measured(NamedTuple):
    """A row with the numbers that were read: its name, kind, help, labels and numbers."""

    name: str
    kind: str
    help: str
    labels: Labels
    bare: bool
    values: Mapping[Labels, float]


COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
REQUESTS = "flagsvc_http_requests"
DURATIONS = "flagsvc_http_request_duration_seconds"
CERTIFICATE = "flagsvc_certificate_expiry_timestamp_seconds"
BUCKETS = (*map(str, BOUNDS), "+Inf")
"""The buckets of every histogram, by their upper bounds."""
SUM = "sum"
UNMATCHED = "unmatched"
"""The label of a request without a route."""
METHODS = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"))
OTHER = "other"
"""The label of any other method, and of a request that could not be read."""
LIMITS_REACHED = "flagsvc_limits_reached"
STREAMS = "flagsvc_streams_"
"""How the names of the metrics of event streams begin."""


def prefers_open_metrics(accept: bytes | None) -> bool:
    """Return whether an Accept header asks for OpenMetrics, and does not prefer plain text."""
    wanted = dict(qualities((accept or b"")[:LONGEST].decode("latin-1")))
    asked = wanted.get("application/openmetrics-text", 0.0)
    return asked > 0 and asked >= wanted.get("text/plain", 0.0)


def method_label(method: bytes) -> str:
    """Return the label of a method that a caller sent: one of a few."""
    return method.decode() if method in METHODS else OTHER


def requests_row(read: Callable[[S], Mapping[Labels, float]]) -> MetricRow[S]:
    """Return the row that counts requests by route template, method and status."""
    return MetricRow(REQUESTS, "counter", "Requests answered.", read, ("route", "method", "status"))


def durations_row(read: Callable[[S], Mapping[Labels, float]]) -> MetricRow[S]:
    """Return the row with the durations of requests by route template and method."""
    text = "Time from the head of a request, with the wait for its body, until its answer was ready. Not of event streams."
    return MetricRow(DURATIONS, HISTOGRAM, text, read, ("route", "method"))


def count_requests(counts: Iterable[StatusCounts]) -> dict[Labels, float]:
    """Return the number of requests by route template, method and status."""
    return {(each.route, each.method, str(status)): float(n) for each in counts for status, n in each.statuses.items()}


def count_durations(counts: Iterable[StatusCounts]) -> dict[Labels, float]:
    """Return the durations of requests by route template and method."""
    return by_bucket({(each.route, each.method): each.durations for each in counts})


def by_bucket(histograms: Mapping[Labels, Histogram]) -> dict[Labels, float]:
    """Return the numbers of a histogram's row: each bucket's own, so that they add up, and the sum."""
    found: dict[Labels, float] = {}
    for labels, histogram in histograms.items():
        found |= {(*labels, bucket): float(n) for bucket, n in zip(BUCKETS, histogram.counts, strict=True) if n}
        if any(histogram.counts):
            found[*labels, SUM] = histogram.sum
    return found


def by_labels(row: Measured) -> dict[Labels, dict[str, float]]:
    """Return the numbers of each histogram of a row by bucket and SUM, by the labels of the histogram."""
    found: dict[Labels, dict[str, float]] = {}
    for key, value in row.values.items():
        found.setdefault(key[:-1], {})[key[-1]] = value
    return found


def traffic_rows(find: Callable[[S], Traffic | None], place: str = "") -> tuple[MetricRow[S], ...]:
    """Return the rows about connections. `find` returns the traffic of the process, or None if it is not known."""

    def row(
        name: str, kind: str, text: str, read: Callable[[Traffic], Mapping[Labels, float]], labels: Labels = ()
    ) -> MetricRow[S]:
        def numbers(source: S) -> Mapping[Labels, float] | None:
            traffic = find(source)
            return None if traffic is None else read(traffic)

        return MetricRow(name, kind, text, numbers, labels, place=place)

    def expiry(of: Traffic) -> Mapping[Labels, float]:
        moment = of.find_expiry()
        return {} if moment is None else {(): moment}

    return (
        row("flagsvc_http_connections_open", GAUGE, "Connections of callers that are open.", lambda of: {(): float(of.open)}),
        row("flagsvc_http_sent_bytes", COUNTER, "Bytes sent to callers, without those of TLS.", lambda of: {(): float(of.sent)}),
        row(
            "flagsvc_event_loop_lag_seconds",
            HISTOGRAM,
            "How late the event loop runs a timer, each second in which callers are connected.",
            lambda of: by_bucket({(): of.lag}),
        ),
        row(CERTIFICATE, GAUGE, "When the certificate that callers see ends; absent without TLS.", expiry),
        row(
            "flagsvc_telemetry_dropped",
            COUNTER,
            "Spans and readings of the metrics that the collector of OpenTelemetry did not get; absent without a collector.",
            lambda of: by_name(of.dropped),
            ("signal",),
        ),
    )


def limits_row(read: Callable[[S], Mapping[Labels, float]]) -> MetricRow[S]:
    """Return the row that counts how often each limit was reached."""
    text = "Requests and connections turned away at a limit."
    return MetricRow(LIMITS_REACHED, "counter", text, read, ("limit",))


def streams_rows(find: Callable[[S], Streams | None], place: str = "") -> tuple[MetricRow[S], ...]:
    """Return the rows about event streams. `find` returns the streams of the process, or None if they are not known."""

    def reading(read: Callable[[Streams], float]) -> Callable[[S], Mapping[Labels, float] | None]:
        def numbers(source: S) -> Mapping[Labels, float] | None:
            streams = find(source)
            return None if streams is None else {(): read(streams)}

        return numbers

    rows: tuple[tuple[str, str, str, Callable[[Streams], float]], ...] = (
        ("open", "gauge", "Event streams that are open.", lambda of: float(of.count)),
        ("opened", "counter", "Event streams that were opened.", lambda of: float(of.opened)),
        ("dropped", "counter", "Event streams that ended because their caller did not read.", lambda of: float(of.dropped)),
        ("told", "counter", "Changes that a caller was told in its event stream.", lambda of: float(of.told)),
        ("delay_seconds", "counter", "Time from each of these changes until its caller was told.", lambda of: of.delay_s),
    )
    return tuple(MetricRow(STREAMS + name, kind, text, reading(read), place=place) for name, kind, text, read in rows)


def by_name(numbers: Mapping[str, int]) -> dict[Labels, float]:
    return {(name,): float(number) for name, number in numbers.items()}


def measured(row: MetricRow[S], values: Mapping[Labels, float]) -> Measured:
    """Return a row with numbers that another process has read."""
    return Measured(row.name, row.kind, row.help, row.labels, row.bare, values)


def measure(rows: Iterable[MetricRow[S]], source: S) -> list[Measured]:
    """Return the rows with their numbers, without rows that are not known now."""
    found = ((row, row.read(source)) for row in rows)
    return [measured(row, values) for row, values in found if values is not None]
