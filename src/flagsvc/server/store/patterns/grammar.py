r"""The grammar of patterns: JavaScript's without flags, with what web browsers take besides (ECMA-262, 22.2.1 and B.1.2)."""

from __future__ import annotations

import re
from typing import Final

from flagsvc.server.store.patterns.budget import Unchecked
from flagsvc.server.store.patterns.escapes import CLASS_CONTROL, CONTROL, Escapes, Invalid, identifier
from flagsvc.server.store.patterns.nodes import (
    Alternation,
    Edge,
    Group,
    LookAround,
    Node,
    One,
    Reference,
    Repeat,
    Sequence,
)
from flagsvc.server.store.patterns.units import ANY, BACKSPACE, HYPHEN, SETS, Ranges, complement, joined, units

COUNT: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
PIECE: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*+(?:\]|\Z)|\((?!\?)|\(\?<(?![=!])", re.DOTALL)
"""What may be the opening of a group that is counted. Each begins where the one before ended: the time is linear in the pattern."""
DIGITS: Final = re.compile(r"[1-9][0-9]*")
MARKS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
LOOKS: Final = {"(?=": (False, False), "(?!": (False, True), "(?<=": (True, False), "(?<!": (True, True)}
"""Opening → whether it looks behind, whether it is negated."""
LARGEST: Final = 0x7FFFFFFF
"""The largest count that JavaScript's engine tells from others."""
MOST_CHARACTERS: Final = 10_000
MOST_DEPTH: Final = 50
SIMPLER: Final = "have the pattern made simpler"


def parse(pattern: str) -> Node:
    """Return the nodes of `^` + pattern + `$`.

    Raises `Invalid` for what is no pattern to JavaScript, `Unchecked` for what is too large to be read.
    """
    if len(pattern) > MOST_CHARACTERS:
        raise Unchecked(f"it is longer than {MOST_CHARACTERS:,} characters", SIMPLER)
    return PatternParser("".join(map(chr, units(f"^{pattern}$")))).parse()


class PatternParser:
    """Reads one pattern, a text with a character for each unit."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._escapes = Escapes(source)
        self._at = 0
        self._depth = 0
        self._opened = 0
        self._groups, self._names = count_groups(source)

    def parse(self) -> Node:
        """Return the nodes of the whole."""
        found = self._choice()
        if self._at < len(self._source):
            raise Invalid  # a closing parenthesis too many
        return found

    def _take(self, text: str) -> bool:
        """Go behind a text, if it comes next."""
        found = self._source.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _next(self) -> str:
        """Return the next character and go behind it."""
        if self._at >= len(self._source):
            raise Invalid
        self._at += 1
        return self._source[self._at - 1]

    def _ahead(self) -> str:
        return self._source[self._at : self._at + 1]

    def _choice(self) -> Node:
        """Return what stands up to the end of a group, or of the whole."""
        ways: list[Node] = []
        nodes: list[Node] = []
        while self._ahead() not in ("", ")"):
            if self._take("|"):
                ways.append(Sequence(tuple(nodes)))
                nodes = []
            else:
                nodes.append(self._term())
        ways.append(Sequence(tuple(nodes)))
        return ways[0] if len(ways) == 1 else Alternation(tuple(ways))

    def _term(self) -> Node:
        """Return one term with its quantifier."""
        first = self._opened + 1
        node = self._atom()
        quantifier = self._quantifier()
        if quantifier is None:
            return node
        if isinstance(node, Edge) or (isinstance(node, LookAround) and node.behind):
            raise Invalid
        least, most = quantifier
        return Repeat(node, least, most, not self._take("?"), (first, self._opened + 1))

    def _atom(self) -> Node:
        """Return one term without its quantifier."""
        letter = self._ahead()
        if letter == "(":
            return self._group()
        if letter in "*+?" or COUNT.match(self._source, self._at):
            raise Invalid
        self._at += 1
        if letter in "^$":
            return Edge(letter)
        if letter == "\\":
            return self._escape()
        if letter == "[":
            return self._class()
        return One(ANY) if letter == "." else one(ord(letter))

    def _quantifier(self) -> tuple[int, int | None] | None:
        """Return the least and the most of the quantifier that comes next, None where there is none."""
        found = COUNT.match(self._source, self._at)
        if found is None:
            mark = MARKS.get(self._ahead())
            self._at += mark is not None
            return mark
        self._at = found.end()
        least = number(found[1])
        most = least if found[2] is None else number(found[3]) if found[3] else None
        if most is not None and most < least:
            raise Invalid
        return least, None if most == LARGEST else most

    def _group(self) -> Node:
        """Return what stands in parentheses."""
        begun = self._at
        self._depth += 1
        if self._depth > MOST_DEPTH:
            reason = f"its groups are nested more than {MOST_DEPTH} deep, at character {begun}"
            raise Unchecked(reason, SIMPLER)
        look = next((each for each in LOOKS if self._take(each)), None)
        counted = None if look or self._take("(?:") else self._open()
        inner = self._choice()
        if not self._take(")"):
            raise Invalid
        self._depth -= 1
        return Group(inner, counted) if look is None else LookAround(inner, *LOOKS[look])

    def _open(self) -> int:
        """Go behind the opening of a group that is counted, and return its number."""
        self._opened += 1
        if self._take("(?<"):
            _, self._at = identifier(self._source, self._at)
        elif self._take("(?"):
            raise Invalid
        else:
            self._at += 1
        return self._opened

    def _escape(self) -> Node:
        """Return what an escape outside a class means; its backslash is behind."""
        letter = self._ahead()
        if letter in ("b", "B"):
            self._at += 1
            return Edge(letter)
        if letter == "k" and self._names:
            return self._named_reference()
        digits = DIGITS.match(self._source, self._at)
        if digits is not None and number(digits[0]) <= self._groups:
            self._at = digits.end()
            return Reference(number(digits[0]))
        if letter in SETS:
            self._at += 1
            return One(SETS[letter])
        found, self._at = self._escapes.read(self._at, CONTROL)
        return one(found)

    def _named_reference(self) -> Node:
        self._at += 1
        if not self._take("<"):
            raise Invalid
        name, self._at = identifier(self._source, self._at)
        if name not in self._names:
            raise Invalid
        return Reference(self._names[name])

    def _class(self) -> Node:
        """Return a class; its opening bracket is behind."""
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            low = self._member()
            if self._ahead() == "-" and self._source[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                found += span(low, self._member())
            else:
                found += whole(low)
        ranges = joined(found)
        return One(complement(ranges) if negated else ranges)

    def _member(self) -> int | Ranges:
        """Return a member of a class: a unit, or a set of them."""
        if not self._take("\\"):
            return ord(self._next())
        if self._take("b"):
            return BACKSPACE
        letter = self._ahead()
        if letter in SETS:
            self._at += 1
            return SETS[letter]
        if letter == "k" and self._names:
            raise Invalid
        found, self._at = self._escapes.read(self._at, CLASS_CONTROL)
        return found


def one(unit: int) -> One:
    """Return the node of one unit."""
    return One(((unit, unit),))


def number(digits: str) -> int:
    """Return a count; however many digits it has, it is at most LARGEST."""
    digits = digits.lstrip("0")
    return min(int(digits or "0"), LARGEST) if len(digits) < 20 else LARGEST


def count_groups(source: str) -> tuple[int, dict[str, int]]:
    """Return how many groups of a pattern are counted, and the numbers of those with a name. Raises `Invalid`."""
    count = 0
    names: dict[str, int] = {}
    for found in PIECE.finditer(source):
        if found[0][0] != "(":
            continue
        count += 1
        if found[0] == "(":
            continue
        name, _ = identifier(source, found.end())
        if name in names:
            raise Invalid
        names[name] = count
    return count, names


def whole(member: int | Ranges) -> Ranges:
    """Return a member of a class as a set."""
    return ((member, member),) if isinstance(member, int) else member


def span(low: int | Ranges, high: int | Ranges) -> Ranges:
    """Return what `low-high` means in a class: with a set on a side, both and the hyphen. Raises `Invalid`."""
    if isinstance(low, int) and isinstance(high, int):
        if low > high:
            raise Invalid
        return ((low, high),)
    return (*whole(low), (HYPHEN, HYPHEN), *whole(high))
