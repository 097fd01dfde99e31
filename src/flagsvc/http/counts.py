"""What is counted of requests, connections and other work: numbers by route and status, durations, bytes. Compiled."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Final

from mypy_extensions import i64

from flagsvc.core.tracing import Tracer

now: Final = monotonic
"""The clock of durations. The compiled form finds a Final name without looking it up by its text."""
SHORTEST: Final = 0.0001
BOUNDS: Final[tuple[float, ...]] = (
    SHORTEST,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)
"""The upper bounds of the buckets of every histogram, in seconds."""


class Histogram:
    """How many durations are in each bucket, and their `sum` in seconds. A duration counts in the first bucket
    whose bound it does not pass.

    Most durations are in the first bucket, `short` ones, so counting them costs least. `longer` has a number for each further
    bound, and one for durations beyond all; it is empty before the first of them.
    """

    def __init__(self) -> None:
        self.short: i64 = 0
        self.longer: list[int] = []
        self.sum: float = 0.0

    @property
    def counts(self) -> list[int]:
        """The numbers of all buckets."""
        return [int(self.short), *(self.longer or [0] * len(BOUNDS))]

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.sum += seconds
        if seconds <= SHORTEST:
            self.short += 1
            return
        if not self.longer:
            self.longer = [0] * len(BOUNDS)
        self.longer[bisect_left(BOUNDS, seconds) - 1] += 1

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Count the duration of a block, also of one that raises."""
        began = now()
        try:
            yield
        finally:
            self.add(now() - began)


class StatusCounts:
    """How often one method of one route was answered with each status, and how long that took.

    The labels come from the route table, never from callers.
    """

    def __init__(self, method: str, route: str) -> None:
        self.method = method
        self.route = route
        self.statuses: dict[int, int] = {}
        self.durations: Final = Histogram()

    def add(self, status: int, started: float = 0.0) -> None:
        """Count an answer that is ready now. `started` is the moment of `time.monotonic` when its head was there; 0 for an answer
        without a duration, as an event stream."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if started:
            self.durations.add(now() - started)


class RouteCounts:
    """The counts of every route. Services that share them count together."""

    def __init__(self) -> None:
        self.every: list[StatusCounts] = []
        self.known: dict[str, StatusCounts] = {}
        self.lock: Final = Lock()

    def of(self, method: str, route: str) -> StatusCounts:
        name = f"{method} {route}"
        found = self.known.get(name)
        if found is None:
            found = StatusCounts(method, route)
            self.known[name] = found
            self.every.append(found)
        return found

    def add(self, method: str, route: str, status: int, started: float = 0.0) -> None:
        """Count an answer. Any thread may, if readers hold the `lock` as well."""
        with self.lock:
            self.of(method, route).add(status, started)


class Calls:
    """Requests to another server: their durations by what they do and how they end, and the bytes `received`."""

    def __init__(self) -> None:
        self.durations: Final[dict[tuple[str, ...], Histogram]] = {}
        self.received: int = 0

    def add(self, request: str, outcome: str, seconds: float) -> None:
        self.durations.setdefault((request, outcome), Histogram()).add(seconds)

    def receive(self, size: int) -> None:
        """Count received bytes."""
        self.received += size


def no_certificate() -> float | None:
    """Return that there is no certificate."""
    return None


class Traffic:
    """The connections of a process: how many are `open`, the bytes `sent` to callers, and how late the event loop is.

    `lag` has the delay of a timer of each second in which connections are open. `find_expiry` returns when the certificate of the
    listening sockets ends, in seconds since the epoch; None without one. `tracer` decides which requests are traced; None for none.
    `dropped` counts what the collector of OpenTelemetry did not get, by signal; empty without a collector.
    """

    def __init__(self) -> None:
        self.open: i64 = 0
        self.sent: i64 = 0
        self.lag: Final = Histogram()
        self.find_expiry: Callable[[], float | None] = no_certificate
        self.tracer: Tracer | None = None
        self.dropped: dict[str, int] = {}
