"""Characters as JavaScript counts them: UTF-16 code units, and sets of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""A set of units: ranges of first and last unit, ascending, with a gap between two ranges."""

LAST_UNIT: Final = 0xFFFF
HYPHEN: Final = 0x2D
BACKSPACE: Final = 0x08
BACKSLASH: Final = 0x5C


def utf16_units(text: str) -> tuple[int, ...]:
    """Return the code units of a text."""
    data = text.encode("utf-16-le", "surrogatepass")
    return struct.unpack(f"<{len(data) // 2}H", data)


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return ranges, which may be unordered and overlap, as a set."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """Return every unit that is not in a set."""
    edges = [-1, *(edge for pair in ranges for edge in pair), LAST_UNIT + 1]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 < high)


DIGIT: Final[Ranges] = ((0x30, 0x39),)
WORD: Final[Ranges] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Final[Ranges] = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
SETS: Final[dict[str, Ranges]] = {
    "d": DIGIT,
    "w": WORD,
    "s": SPACE,
    "D": complement(DIGIT),
    "W": complement(WORD),
    "S": complement(SPACE),
}
DOT: Final = complement(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))
"""The units that `.` matches."""
