"""Saying what went wrong not more often than helps."""

from __future__ import annotations

from flagsvc.core.clock import Clock

MAX_REMEMBERED = 1000


class Throttle:
    """Lets a name through once in `seconds`, for ever after the first where `seconds` is None."""

    def __init__(self, clock: Clock, seconds: float | None) -> None:
        self._clock = clock
        self._seconds = seconds
        self._last: dict[str, float] = {}

    def allows(self, name: str) -> bool:
        """Return whether it is time to speak of `name` (again), and remember that it was done."""
        now = self._clock.monotonic()
        last = self._last.get(name)
        if last is not None and (self._seconds is None or now - last < self._seconds):
            return False
        if last is None and len(self._last) >= MAX_REMEMBERED:
            return False
        self._last[name] = now
        return True
