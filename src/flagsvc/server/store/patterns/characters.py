r"""Characters as JavaScript counts them, UTF-16 code units; escapes and group names of a pattern (ECMA-262, 22.2.1 and B.1.2)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from typing import Final, TypeAlias

CONTROLS: Final = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
CONTROL: Final = re.compile("[A-Za-z]")
"""The letters that may follow `\\c`."""
CLASS_CONTROL: Final = re.compile("[A-Za-z0-9_]")
"""The characters that may follow `\\c` in a class."""
OCTAL: Final = re.compile("[0-3][0-7]{0,2}|[4-7][0-7]?")
HEX_DIGITS: Final = {"x": re.compile("[0-9A-Fa-f]{2}"), "u": re.compile("[0-9A-Fa-f]{4}")}
UNICODE_ESCAPE: Final = re.compile(r"\\u(?:([0-9A-Fa-f]{4})|\{0{0,32}([0-9A-Fa-f]{1,6})\})")
JOINERS: Final = "$\u200c\u200d"
LAST_CODE_POINT: Final = 0x10FFFF


class InvalidPattern(Exception):  # noqa: N818  (a verdict on the pattern)
    """JavaScript rejects the pattern."""


class EscapeReader:
    """Reads escapes that mean one unit, in a text with one character per unit."""

    def __init__(self, source: str) -> None:
        self._source = source

    def read(self, at: int, control: re.Pattern[str]) -> tuple[int, int]:
        """Return the unit of an escape, and where it ends. `at` is the position after the backslash, before the end of the text."""
        letter = self._source[at]
        if letter in CONTROLS:
            return CONTROLS[letter], at + 1
        if letter in HEX_DIGITS:
            found = HEX_DIGITS[letter].match(self._source, at + 1)
            return (ord(letter), at + 1) if found is None else (int(found[0], 16), found.end())
        if letter == "c":
            return self._control(at, control)
        octal = OCTAL.match(self._source, at)
        return (ord(letter), at + 1) if octal is None else (int(octal[0], 8), octal.end())

    def _control(self, at: int, control: re.Pattern[str]) -> tuple[int, int]:
        """Return a control character; without a letter after the `c`, return the backslash itself, with the `c` unread."""
        found = control.match(self._source, at + 1)
        return (BACKSLASH, at) if found is None else (ord(found[0]) % 32, found.end())


def read_group_name(source: str, at: int) -> tuple[str, int]:
    """Return the name of a group that begins at a position, and the position after its `>`. Raises `InvalidPattern`."""
    end = source.find(">", at)
    if end < 0:
        raise InvalidPattern
    text = UNICODE_ESCAPE.sub(_decode_unicode_escape, source[at:end])
    name = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    plain = "".join("_" if each in JOINERS else each for each in name)
    if not plain.isidentifier() or name[0] in JOINERS[1:]:
        raise InvalidPattern
    return name, end + 1


def _decode_unicode_escape(found: re.Match[str]) -> str:
    number = int(found[1] or found[2], 16)
    if number > LAST_CODE_POINT:
        raise InvalidPattern
    return chr(number)


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
