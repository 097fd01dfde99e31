"""A least-squares line through measurements: whether memory grows, and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Trend:
    """A line through points: its slope, and the slope's standard error."""

    slope: float
    error: float


def trend(points: Sequence[tuple[float, float]]) -> Trend:
    """Return the line through points (x, y); with fewer than three points, or a single x, the slope is 0."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count if count else 0.0
    mean_y = sum(y for _, y in points) / count if count else 0.0
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if count < 3 or not spread:
        return Trend(0.0, 0.0)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    left = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return Trend(slope, math.sqrt(left / (count - 2) / spread))
