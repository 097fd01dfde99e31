"""What the metrics of several processes add up to (behaviour: Metrics endpoint). Pure.

A worker sends how much its counters grew since the last time, so that nothing is counted twice and nothing goes down when
it dies; of what is no counter it sends how it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flagsvc.http.call import StatusCounts
from flagsvc.http.metrics import REQUESTS, Key, Readings
from flagsvc.proxy.api.samples import COUNTED, statuses


class MetricChanges:
    """The worker's side: what is new since the last time."""

    def __init__(self) -> None:
        self._sent: Readings = {}

    def take(self, readings: Readings) -> Readings:
        """Return what changed of these readings: of counters the difference, of others the number."""
        sent = self._sent
        changed = {key: value for key, value in readings.items() if value != sent.get(key, 0)}
        changes = {key: value - sent.get(key, 0) if key[0] in COUNTED else value for key, value in changed.items()}
        sent.update(changed)
        return changes


class NewReadings:
    """The readings of requests that are new since the last time: what is sent so often that next to nothing of it can be lost.

    Most routes were not asked for meanwhile; to see that costs next to nothing.
    """

    def __init__(self, tallies: Sequence[StatusCounts]) -> None:
        self._tallies = [(tally, dict[int, int]()) for tally in tallies]

    def take(self) -> Readings:
        """Return the readings of the routes that were asked for."""
        found: Readings = {}
        for tally, seen in self._tallies:
            if tally.statuses != seen:
                seen.update(tally.statuses)
                found.update({(REQUESTS, *labels): count for labels, count in statuses(tally).items()})
        return found


class MetricSums:
    """The parent's side."""

    def __init__(self) -> None:
        self._counters: Readings = {}
        self._present: dict[int, Readings] = {}

    def add(self, worker: int, changes: Mapping[Key, float]) -> None:
        """Add what a worker sent."""
        present = self._present.setdefault(worker, {})
        for key, value in changes.items():
            if key[0] in COUNTED:
                self._counters[key] = self._counters.get(key, 0) + value
            else:
                present[key] = value

    def forget(self, worker: int) -> None:
        """Forget how it is in a worker that is gone; what it counted stays."""
        self._present.pop(worker, None)

    def total(self, own: Readings) -> Readings:
        """Return the sums over all processes, this one's readings among them."""
        total = dict(own)
        for readings in (self._counters, *self._present.values()):
            for key, value in readings.items():
                total[key] = total.get(key, 0) + value
        return total
