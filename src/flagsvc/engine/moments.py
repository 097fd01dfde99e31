"""The dates of a configuration, and the position of a time among them. Compiled."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.engine.context import Context

NEVER: Final = -1
"""The position of a time that is not a number."""


class Moments:
    """The moments that date constraints compare the time with (epoch milliseconds), in their order.

    Two times at the same position compare alike with each of them.
    """

    def __init__(self, values: set[float]) -> None:
        self.values: list[float] = sorted(values)
        self.exist: bool = len(values) > 0

    def position(self, context: Context) -> i64:
        """Return twice the number of moments before the time of an evaluation, one more if it is the next one; else NEVER."""
        given = context.current_time
        time = context.now if given is None else given
        if time != time:
            return NEVER
        low: i64 = 0
        high: i64 = len(self.values)
        while low < high:
            middle = (low + high) >> 1
            if self.values[middle] < time:
                low = middle + 1
            else:
                high = middle
        if low < len(self.values) and self.values[low] == time:
            return 2 * low + 1
        return 2 * low
