"""Counts how attempts of webhooks come out."""

from __future__ import annotations

import threading

DELIVERED, RETRIED, FAILED = "delivered", "retried", "failed"
OUTCOMES = (DELIVERED, RETRIED, FAILED)
"""An attempt was a success, is followed by another one, or was the last one without success."""


class AttemptCounts:
    """Counts attempts from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(OUTCOMES, 0)

    def add(self, outcome: str) -> None:
        """Count one attempt."""
        with self._lock:
            self._counts[outcome] += 1

    def read(self) -> dict[str, int]:
        """Return the counts by outcome as they stand now."""
        with self._lock:
            return dict(self._counts)
