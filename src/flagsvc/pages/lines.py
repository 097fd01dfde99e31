"""Small lines of numbers, as the points of an SVG polyline."""

from __future__ import annotations

from collections.abc import Sequence


def line_points(values: Sequence[float], height: int, first: int = 0) -> str:
    """Return the points of a line: the values one beside the other from `first`, the largest one at the top of `height`."""
    highest = max(values, default=0) or 1
    return " ".join([f"{first + at},{height - each / highest * height:.1f}" for at, each in enumerate(values)])
