"""Counts the responses of each route by status, and what reports have that cannot be read.

The labels come from the routes, never from callers.
"""

from __future__ import annotations

import threading


class AnswerCounts:
    """Counts answers from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, str, int], int] = {}

    def add(self, route: str, method: str, status: int) -> None:
        """Count one answer of a route, by its template."""
        key = (route, method, status)
        with self._lock:
            self._answers[key] = self._answers.get(key, 0) + 1

    def read(self) -> dict[tuple[str, str, int], int]:
        """Return the counts by (route, method, status) as they stand now."""
        with self._lock:
            return dict(self._answers)


class MalformedCount:
    """Counts the entries of reports that were left out because they cannot be read, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0

    def add(self, number: int) -> None:
        """Count so many entries."""
        with self._lock:
            self._number += number

    def read(self) -> int:
        """Return the number as it stands now."""
        return self._number
