"""A line through measurements by least squares: does memory grow, and how sure is that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Trend:
    """A line through points: how much it rises for each unit of x, and the standard error of that."""

    slope: float
    error: float


def trend(points: Sequence[tuple[float, float]]) -> Trend:
    """Return the line through points (x, y); with fewer than three of them, or all at one x, it rises by nothing."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count if count else 0.0
    mean_y = sum(y for _, y in points) / count if count else 0.0
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if count < 3 or not spread:
        return Trend(0.0, 0.0)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    left = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return Trend(slope, math.sqrt(left / (count - 2) / spread))
