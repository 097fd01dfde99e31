"""What the metrics of several processes add up to (behaviour: Metrics endpoint). Pure.

A worker sends the growth of its counters since the last message. So nothing is counted twice, and no sum goes down when a worker
ends. Of other metrics it sends the present value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flagsvc.http.counts import StatusCounts
from flagsvc.http.metrics import CERTIFICATE, DURATIONS, REQUESTS, Key, Labels, Readings, count_durations, count_requests
from flagsvc.proxy.api.metrics import COUNTED, Sources


class MetricChanges:
    """The worker's side: what has changed since the last message."""

    def __init__(self) -> None:
        self._sent: Readings = {}

    def take_changes(self, readings: Readings) -> Readings:
        """Return the changed readings, and remember them as sent: the difference of counters, the value of other metrics."""
        sent = self._sent
        changed = {key: value for key, value in readings.items() if value != sent.get(key, 0)}
        changes = {key: growth(value, sent.get(key, 0)) if key[0] in COUNTED else value for key, value in changed.items()}
        sent.update(changed)
        return changes


def growth(value: float, sent: float) -> float:
    """Return how much a counter has grown. One that is smaller than before began at 0 again, in another environment of its name."""
    return value - sent if value >= sent else value


class NewReadings:
    """The requests of routes that have new requests, and their durations. A worker sends them often, so that a kill loses little.

    Most routes have no new requests, and checking that is cheap.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._seen: dict[int, dict[int, int]] = {}

    def take_new(self) -> Readings:
        """Return the readings of the routes that had requests since the last call."""
        found: Readings = {}
        for place, tallies in places_of(self._sources):
            for tally in tallies:
                seen = self._seen.setdefault(id(tally), {})
                if tally.statuses != seen:
                    seen.update(tally.statuses)
                    found |= {(REQUESTS, *place, *labels): count for labels, count in count_requests([tally]).items()}
                    found |= {(DURATIONS, *place, *labels): count for labels, count in count_durations([tally]).items()}
        return found


def places_of(sources: Sources) -> Iterator[tuple[Labels, Sequence[StatusCounts]]]:
    """Yield the request counts of each environment with its label; those of a single environment without a label."""
    parts = {} if sources.environments is None else sources.environments()
    if not parts or "" in parts:
        yield (), sources.status_counts
        return
    yield ("",), sources.status_counts
    for name, part in parts.items():
        yield (name,), part.status_counts


class MetricSums:
    """The parent's side: the sums over all workers."""

    def __init__(self) -> None:
        self._counters: Readings = {}
        self._gauges: dict[int, Readings] = {}

    def add(self, worker: int, changes: Mapping[Key, float]) -> None:
        gauges = self._gauges.setdefault(worker, {})
        for key, value in changes.items():
            if key[0] in COUNTED:
                self._counters[key] = self._counters.get(key, 0) + value
            else:
                gauges[key] = value

    def forget_worker(self, worker: int) -> None:
        """Forget the gauges of a worker that has ended. Its counters stay in the sums."""
        self._gauges.pop(worker, None)

    def total(self, own: Readings) -> Readings:
        """Return the sums over all processes, including this process's `own` readings. Of certificates the first end counts."""
        total = dict(own)
        for readings in (self._counters, *self._gauges.values()):
            for key, value in readings.items():
                total[key] = min(total.get(key, value), value) if key[0] == CERTIFICATE else total.get(key, 0) + value
        return total
