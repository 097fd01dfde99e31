"""Weights that are no whole numbers, added as JavaScript adds them (behaviour: Odd values in a configuration).

A text in a sum makes the sum a text: `500 + "500"` is `500500`. A missing weight makes the total NaN, and then everyone gets the
first variant whose weight is not zero.
"""

from __future__ import annotations

import math
from typing import Final

from flagsvc.engine.values.jsnumber import EXACT_INTEGERS
from flagsvc.engine.values.jsvalue import number_of, text_of

MAX_WEIGHT: Final = 2**31
LONGEST: Final = 1000
"""The characters of a sum that are kept. What follows changes no number that has fewer digits."""


def is_plain(raw: object) -> bool:
    """Return whether a weight is a whole number of a usual size."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return False
    return -MAX_WEIGHT <= raw <= MAX_WEIGHT and raw == raw // 1


def plus(left: object, right: object) -> object:
    """Return the result of `left + right` in JavaScript. A text of LONGEST characters stays as it is."""
    if isinstance(left, str) and len(left) == LONGEST:
        return left
    if is_text(left) or is_text(right):
        return (text_of(left) + text_of(right))[:LONGEST]
    return number_of(left) + number_of(right)


def is_text(raw: object) -> bool:
    """Return whether `+` takes the value for a text."""
    return isinstance(raw, (list, dict, str))


def is_zero(raw: object) -> bool:
    """Return whether a weight is the number zero. Null and a text are not."""
    return isinstance(raw, (int, float)) and not isinstance(raw, bool) and raw == 0


class Weights:
    """The total of some weights; for each weight that is not zero its index, and the sum up to it."""

    def __init__(self, stated: list[object]) -> None:
        total: object = 0
        counter: object = 0
        self.count = len(stated)
        self.indexes: list[int] = []
        self.limits: list[float] = []
        for at, weight in enumerate(stated):
            total = plus(total, weight)
            if not is_zero(weight):
                before, counter = counter, plus(counter, weight)
                self.indexes.append(at)
                # to read a long text takes as long as thousand sums
                self.limits.append(self.limits[-1] if counter is before else number_of(counter))
        self.total: float = number_of(total)

    def draw(self, hashed: int) -> int:
        """Return the index that a hash of 32 bits draws; -1 for none, because the total has a fraction."""
        target = math.fmod(float(hashed), self.total) + 1.0
        for at, limit in enumerate(self.limits):
            if not limit < target:
                return self.indexes[at]
        return -1

    def is_whole(self) -> bool:
        """Return whether whole numbers draw the same: the total is one, and the last sum reaches it."""
        if self.total != self.total or self.total <= 0:
            return True
        if self.total > EXACT_INTEGERS or self.total % 1 != 0 or any([limit != limit for limit in self.limits]):
            return False
        return self.limits[-1] == self.total

    def rounded(self) -> list[int]:
        """Return whole numbers for the weights. They draw the same if `is_whole`, else they are about the same."""
        weights = [0] * self.count
        if self.total != self.total:
            weights[self.indexes[0]] = 1
        elif self.total > 0:
            last = 0
            ceiling = min(self.total, float(EXACT_INTEGERS))
            for at, limit in zip(self.indexes, self.limits, strict=True):
                whole = 0 if limit != limit else math.floor(max(min(limit, ceiling), -ceiling))
                weights[at] = whole - last
                last = whole
        return weights
