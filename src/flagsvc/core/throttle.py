"""Limits how often the same problem is logged."""

from __future__ import annotations

from flagsvc.core.clock import Clock

MAX_REMEMBERED = 1000


class Throttle:
    """Allows each name once in `seconds`, or only once if `seconds` is None. At most MAX_REMEMBERED names are allowed."""

    def __init__(self, clock: Clock, seconds: float | None) -> None:
        self._clock = clock
        self._seconds = seconds
        self._last: dict[str, float] = {}

    def allows(self, name: str) -> bool:
        """Return whether `name` may be logged now, and remember the time if so."""
        now = self._clock.monotonic()
        last = self._last.get(name)
        if last is not None and (self._seconds is None or now - last < self._seconds):
            return False
        if last is None and len(self._last) >= MAX_REMEMBERED:
            return False
        self._last[name] = now
        return True
