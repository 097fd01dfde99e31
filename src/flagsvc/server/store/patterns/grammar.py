r"""Parses patterns: JavaScript's grammar without flags, with the extensions for web browsers (ECMA-262, 22.2.1 and B.1.2).

Characters count as in JavaScript, in UTF-16 code units.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
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


def read_escape(source: str, at: int, control: re.Pattern[str]) -> tuple[int, int]:
    """Return the unit of an escape, and where it ends. `at` is the position after the backslash, before the end of the text.

    `control` finds what may follow `\\c`. Without that, the escape is the backslash itself, with the `c` unread.
    """
    letter = source[at]
    if letter in CONTROLS:
        return CONTROLS[letter], at + 1
    if letter in HEX_DIGITS:
        found = HEX_DIGITS[letter].match(source, at + 1)
        return (ord(letter), at + 1) if found is None else (int(found[0], 16), found.end())
    if letter == "c":
        found = control.match(source, at + 1)
        return (BACKSLASH, at) if found is None else (ord(found[0]) % 32, found.end())
    octal = OCTAL.match(source, at)
    return (ord(letter), at + 1) if octal is None else (int(octal[0], 8), octal.end())


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

COUNT: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
GROUP_OPENING: Final = re.compile(r"\\.|\[(?:\\(?:.|\Z)|[^\]\\])*(?:\]|\Z)|\((?!\?)|\(\?<(?![=!])", re.DOTALL)
"""Candidates for the opening of a numbered group. Matches do not overlap, so the time is linear in the pattern."""
DIGITS: Final = re.compile(r"[1-9][0-9]*")
QUANTIFIERS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
LOOK_AROUNDS: Final = {"(?=": (False, False), "(?!": (False, True), "(?<=": (True, False), "(?<!": (True, True)}
"""Opening → whether it looks behind, whether it is negated."""
MAX_COUNT: Final = 0x7FFFFFFF
"""The largest count that JavaScript's engine distinguishes."""
MAX_CHARACTERS: Final = 10_000
MAX_DEPTH: Final = 50
SIMPLIFY: Final = "have the pattern made simpler"


class UncheckedNameError(Exception):
    """A name cannot be checked. `reason` says why ("it …", the pattern), `remedy` says what helps; both are parts of a sentence."""

    def __init__(self, reason: str, remedy: str = SIMPLIFY) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


@dataclass(frozen=True)
class UnitSet:
    """Any one unit of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Assertion:
    r"""An assertion about a position: `^`, `$`, `b` or `B`."""

    kind: str


@dataclass(frozen=True)
class Sequence:
    """Nodes that match one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Alternation:
    """Nodes of which one matches; earlier ones are tried first."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """A group in parentheses."""

    node: Node


@dataclass(frozen=True)
class LookAround:
    """A look-ahead or look-behind; `negated` means that the node must not match."""

    node: Node
    behind: bool
    negated: bool


@dataclass(frozen=True)
class Reference:
    """A reference to the text that a group matched."""


@dataclass(frozen=True)
class Repeat:
    """A repeated node; `most` is None for no limit."""

    node: Node
    least: int
    most: int | None
    greedy: bool


Node: TypeAlias = UnitSet | Assertion | Sequence | Alternation | Group | LookAround | Reference | Repeat


def parse(pattern: str) -> Node:
    """Return the nodes of `^` + pattern + `$`.

    Raises `InvalidPattern` for a pattern that JavaScript rejects, and `UncheckedNameError` for one that is too large.
    """
    if len(pattern) > MAX_CHARACTERS:
        raise UncheckedNameError(f"it is longer than {MAX_CHARACTERS:,} characters")
    return PatternParser("".join(map(chr, utf16_units(f"^{pattern}$")))).parse()


class PatternParser:
    """Parses one pattern, a text with one character per unit."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0
        self._groups, self._names = count_groups(source)

    def parse(self) -> Node:
        found = self._alternation()
        if self._at < len(self._source):
            raise InvalidPattern  # an unmatched closing parenthesis
        return found

    def _accept(self, text: str) -> bool:
        """Skip a text if it comes next; return whether it did."""
        found = self._source.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _next(self) -> str:
        if self._at >= len(self._source):
            raise InvalidPattern
        self._at += 1
        return self._source[self._at - 1]

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _alternation(self) -> Node:
        """Return the nodes up to the end of the group or the pattern."""
        alternatives: list[Node] = []
        nodes: list[Node] = []
        while self._peek() not in ("", ")"):
            if self._accept("|"):
                alternatives.append(Sequence(tuple(nodes)))
                nodes = []
            else:
                nodes.append(self._term())
        alternatives.append(Sequence(tuple(nodes)))
        return alternatives[0] if len(alternatives) == 1 else Alternation(tuple(alternatives))

    def _term(self) -> Node:
        """Parse one term with its quantifier."""
        node = self._atom()
        quantifier = self._quantifier()
        if quantifier is None:
            return node
        if isinstance(node, Assertion) or (isinstance(node, LookAround) and node.behind):
            raise InvalidPattern
        least, most = quantifier
        return Repeat(node, least, most, not self._accept("?"))

    def _atom(self) -> Node:
        """Parse one term without its quantifier."""
        letter = self._peek()
        if letter == "(":
            return self._group()
        if letter in "*+?" or COUNT.match(self._source, self._at):
            raise InvalidPattern
        self._at += 1
        if letter in "^$":
            return Assertion(letter)
        if letter == "\\":
            return self._escape()
        if letter == "[":
            return self._class()
        return UnitSet(DOT) if letter == "." else single_unit(ord(letter))

    def _quantifier(self) -> tuple[int, int | None] | None:
        """Return the minimum and maximum of the quantifier that comes next; None without one."""
        found = COUNT.match(self._source, self._at)
        if found is None:
            mark = QUANTIFIERS.get(self._peek())
            self._at += mark is not None
            return mark
        self._at = found.end()
        least = parse_count(found[1])
        most = least if found[2] is None else parse_count(found[3]) if found[3] else None
        if most is not None and most < least:
            raise InvalidPattern
        return least, None if most == MAX_COUNT else most

    def _group(self) -> Node:
        start = self._at
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UncheckedNameError(f"its groups are nested more than {MAX_DEPTH} deep, at character {start}")
        look = next((each for each in LOOK_AROUNDS if self._accept(each)), None)
        if not look and not self._accept("(?:"):
            self._open_numbered_group()
        inner = self._alternation()
        if not self._accept(")"):
            raise InvalidPattern
        self._depth -= 1
        return Group(inner) if look is None else LookAround(inner, *LOOK_AROUNDS[look])

    def _open_numbered_group(self) -> None:
        if self._accept("(?<"):
            _, self._at = read_group_name(self._source, self._at)
        elif self._accept("(?"):
            raise InvalidPattern
        else:
            self._at += 1

    def _escape(self) -> Node:
        """Parse an escape outside a class, after its backslash."""
        letter = self._peek()
        if letter in ("b", "B"):
            self._at += 1
            return Assertion(letter)
        if letter == "k" and self._names:
            return self._named_reference()
        digits = DIGITS.match(self._source, self._at)
        if digits is not None and parse_count(digits[0]) <= self._groups:
            self._at = digits.end()
            return Reference()
        if letter in SETS:
            self._at += 1
            return UnitSet(SETS[letter])
        found, self._at = read_escape(self._source, self._at, CONTROL)
        return single_unit(found)

    def _named_reference(self) -> Node:
        self._at += 1
        if not self._accept("<"):
            raise InvalidPattern
        name, self._at = read_group_name(self._source, self._at)
        if name not in self._names:
            raise InvalidPattern
        return Reference()

    def _class(self) -> Node:
        """Parse a class, after its opening bracket."""
        negated = self._accept("^")
        found: list[tuple[int, int]] = []
        while not self._accept("]"):
            low = self._member()
            if self._peek() == "-" and self._source[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                found += class_range(low, self._member())
            else:
                found += as_ranges(low)
        ranges = merge_ranges(found)
        return UnitSet(complement(ranges) if negated else ranges)

    def _member(self) -> int | Ranges:
        """Parse a member of a class: a unit, or a set of units."""
        if not self._accept("\\"):
            return ord(self._next())
        if self._accept("b"):
            return BACKSPACE
        letter = self._peek()
        if letter in SETS:
            self._at += 1
            return SETS[letter]
        if letter == "k" and self._names:
            raise InvalidPattern
        found, self._at = read_escape(self._source, self._at, CLASS_CONTROL)
        return found


def single_unit(unit: int) -> UnitSet:
    return UnitSet(((unit, unit),))


def parse_count(digits: str) -> int:
    """Return a count, at most MAX_COUNT, from any number of digits."""
    digits = digits.lstrip("0")
    return min(int(digits or "0"), MAX_COUNT) if len(digits) < 20 else MAX_COUNT


def count_groups(source: str) -> tuple[int, set[str]]:
    """Return how many numbered groups a pattern has, and the names of named groups. Raises `InvalidPattern`."""
    count = 0
    names: set[str] = set()
    for found in GROUP_OPENING.finditer(source):
        if found[0][0] != "(":
            continue
        count += 1
        if found[0] == "(":
            continue
        name, _ = read_group_name(source, found.end())
        if name in names:
            raise InvalidPattern
        names.add(name)
    return count, names


def as_ranges(member: int | Ranges) -> Ranges:
    """Return a member of a class as a set of units."""
    return ((member, member),) if isinstance(member, int) else member


def class_range(low: int | Ranges, high: int | Ranges) -> Ranges:
    """Return the units of `low-high` in a class; with a set on either side, both sides and the hyphen. Raises `InvalidPattern`."""
    if isinstance(low, int) and isinstance(high, int):
        if low > high:
            raise InvalidPattern
        return ((low, high),)
    return (*as_ranges(low), (HYPHEN, HYPHEN), *as_ranges(high))
