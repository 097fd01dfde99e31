"""What a metric is, for both programs: one row each, and the text in Prometheus format that they make.

Labels are route templates, methods and statuses, and words of our own: never a path, header, key or name that a caller sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels: TypeAlias = tuple[str, ...]
Key: TypeAlias = tuple[str, ...]
"""The name of a row, and the values of its labels."""
Readings: TypeAlias = dict[Key, float]
"""One number for each sample."""

S = TypeVar("S")


class MetricRow(NamedTuple, Generic[S]):
    """One metric: `read` returns a number for each tuple of values of the labels, or None where the metric cannot be told now.

    A counter's name has no `_total`: it is written with it. The numbers of counters only grow while a process lives. A `private`
    row would tell callers which toggles there are: it is written only where callers cannot ask. A `bare` row has no labels, and
    is written first, as a whole number under its name as it stands.
    """

    name: str
    kind: str
    help: str
    read: Callable[[S], Mapping[Labels, float] | None]
    labels: Labels = ()
    private: bool = False
    bare: bool = False


class Measured(NamedTuple):
    """A row that has been read: its name, kind, help and labels, and its numbers."""

    name: str
    kind: str
    help: str
    labels: Labels
    bare: bool
    values: Mapping[Labels, float]


REQUESTS = "flagsvc_http_requests"
LIMITS_REACHED = "flagsvc_limits_reached"


def requests_row(read: Callable[[S], Mapping[Labels, float]]) -> MetricRow[S]:
    """Return the row that counts requests by route template, method and status."""
    return MetricRow(REQUESTS, "counter", "Requests answered.", read, ("route", "method", "status"))


def limits_row(read: Callable[[S], Mapping[Labels, float]]) -> MetricRow[S]:
    """Return the row that counts how often each limit was reached."""
    text = "Requests and connections turned away at a limit."
    return MetricRow(LIMITS_REACHED, "counter", text, read, ("limit",))


def by_name(numbers: Mapping[str, int]) -> dict[Labels, float]:
    """Return numbers under the one label that they have."""
    return {(name,): float(number) for name, number in numbers.items()}


def measured(row: MetricRow[S], values: Mapping[Labels, float]) -> Measured:
    """Return a row with numbers that were read elsewhere."""
    return Measured(row.name, row.kind, row.help, row.labels, row.bare, values)


def measure(rows: Iterable[MetricRow[S]], source: S) -> list[Measured]:
    """Return the rows with their numbers, without those that cannot be told now."""
    found = ((row, row.read(source)) for row in rows)
    return [measured(row, values) for row, values in found if values is not None]
