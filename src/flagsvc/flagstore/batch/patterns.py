r"""Naming patterns: regular expressions as JavaScript reads them without flags (import validation, 4.1 and 10).

A pattern is read as JavaScript reads it, older forms included (a lone brace, `\q` for `q`, octal escapes), and written anew in the
syntax of RE2, which searches in linear time. Text is searched as JavaScript sees it, as units of UTF-16.

What RE2 does not have (look-around, references to groups, counts beyond a thousand) is left to Python's `re`, which may go back
and try again; therefore it only gets texts that may be names (`LONGEST`), a longer one counts as not matching. The one form that
neither can search, look-behind of no fixed length, matches nothing: a check that cannot be made is reported, not left out. A
pattern that JavaScript refuses is no pattern: it matches everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

import re2

Ranges: TypeAlias = list[tuple[int, int]]
Matcher: TypeAlias = Callable[[str], bool]

LONGEST: Final = 100
"""Characters of the longest name that a feature may have."""
LAST: Final = 0x10FFFF
SURROGATES: Final = 0xD800
STAND_INS: Final = 0xF0000
"""Where the halves of surrogate pairs are searched: RE2 takes none."""
SPACE: Final[Ranges] = [
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
]
SETS: Final[dict[str, Ranges]] = {
    "d": [(0x30, 0x39)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "s": SPACE,
}
NEWLINES: Final[Ranges] = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]
CONTROLS: Final = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
COUNT: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
NAME: Final = re.compile(r"<([A-Za-z_$][\w$]*)>")
GROUPS: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?<(?![=!])[^>]*>)", re.DOTALL)
OPENINGS: Final = ("(?:", "(?=", "(?!", "(?<=", "(?<!")
LOOKS: Final = OPENINGS[1:]


class Invalid(Exception):  # noqa: N818  (a verdict on the pattern)
    """JavaScript does not take the pattern."""


def compile_pattern(pattern: str) -> Matcher:
    """Return what tells whether a name matches `^` + pattern + `$`; everything matches where that is no pattern."""
    source = units(f"^{pattern}$")
    try:
        linear = Translation(source, r"\x{%x}", r"\z")
    except (Invalid, RecursionError):
        return lambda name: True
    compiled = None if linear.looks_back else compile_linear(linear.text)
    if compiled is not None:
        return lambda name: compiled.search(units(name)) is not None
    return backtracking(Translation(source, r"\U%08x", r"\Z").text)


def compile_linear(text: str) -> re2._Regexp | None:
    """Return RE2's pattern; None where it is too large for it."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(text, options)
    except re2.error:
        return None


def backtracking(text: str) -> Matcher:
    """Return a matcher by Python's `re`, for texts that are short."""
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return lambda name: False
    return lambda name: len(name) <= LONGEST and compiled.search(units(name)) is not None


def units(text: str) -> str:
    """Return a text with one character for each unit of its UTF-16 form."""
    if text.isascii():
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    numbers = (data[at] | data[at + 1] << 8 for at in range(0, len(data), 2))
    return "".join(chr(each + STAND_INS - SURROGATES if SURROGATES <= each < 0xE000 else each) for each in numbers)


class Translation:
    """A pattern written anew: `text`, for a library that writes a character as `character` says and the very end as `end`.

    `looks_back` tells that it needs more than RE2 has. Raises `Invalid`.
    """

    def __init__(self, source: str, character: str, end: str) -> None:
        self._source = source
        self._at = 0
        self._character = character
        self._end = end
        names = [found[1] for found in GROUPS.finditer(source) if found[1]]
        self._groups = len(names)
        self._names = [name[3:-1] for name in names if name != "("]
        self._opened: dict[str, int] = {}
        self._count = 0
        self._closed: set[int] = set()
        self.looks_back = False
        if len(set(self._names)) < len(self._names):
            raise Invalid
        self.text = self._alternatives()
        if self._at < len(source):
            raise Invalid  # a closing parenthesis too many

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

    def _alternatives(self) -> str:
        written: list[str] = []
        while self._ahead() not in ("", ")"):
            written.append("|" if self._take("|") else self._term())
        return "".join(written)

    def _term(self) -> str:
        """Return one term with its quantifier."""
        if self._take("^"):
            atom, repeats = r"\A", False
        elif self._take("$"):
            atom, repeats = self._end, False
        elif self._ahead() == "(":
            atom, repeats = self._group()
        elif self._take("\\"):
            atom, repeats = self._escape()
        elif self._take("["):
            atom, repeats = self._class(), True
        elif self._take("."):
            atom, repeats = self._set(NEWLINES, negated=True), True
        elif self._ahead() in "*+?" or COUNT.match(self._source, self._at):
            raise Invalid
        else:
            atom, repeats = self._one(ord(self._next())), True
        quantifier = self._quantifier()
        if quantifier and not repeats:
            raise Invalid
        return atom + quantifier

    def _quantifier(self) -> str:
        """Return the quantifier that comes next, if one does."""
        found = COUNT.match(self._source, self._at)
        if found is not None:
            self._at = found.end()
            least, most = int(found[1]), int(found[3]) if found[3] else None
            if most is not None and most < least:
                raise Invalid
            written = found[0]
        else:
            written = next((each for each in "*+?" if self._take(each)), "")
        return written + ("?" if written and self._take("?") else "")

    def _group(self) -> tuple[str, bool]:
        """Return a group, and whether it may be repeated: a look behind may not."""
        opening = next((each for each in OPENINGS if self._take(each)), "(")
        if opening == "(":
            self._open()
        number = self._count
        self.looks_back = self.looks_back or opening in LOOKS
        inner = self._alternatives()
        if not self._take(")"):
            raise Invalid
        self._closed.update([number] if opening == "(" else [])
        group = f"{opening}{inner})"
        return (f"(?:{group})" if opening in LOOKS else group), not opening.startswith("(?<")

    def _open(self) -> None:
        """Go behind the opening of a group that is counted."""
        self._take("(")
        self._count += 1
        if not self._take("?"):
            return
        found = NAME.match(self._source, self._at)
        if found is None:
            raise Invalid
        self._at = found.end()
        self._opened[found[1]] = self._count

    def _escape(self) -> tuple[str, bool]:
        """Return what an escape outside a class means, and whether it may be repeated."""
        letter = self._ahead()
        if letter in ("b", "B"):
            self._at += 1
            return self._boundary(letter), False
        if letter == "k" and self._names:
            return self._named_reference(), True
        number = re.match(r"[1-9][0-9]*", self._source[self._at :])
        if number is not None and int(number[0]) <= self._groups:
            self._at += number.end()
            return self._reference(int(number[0])), True
        found = self._escaped()
        return (self._one(found) if isinstance(found, int) else self._set(found)), True

    def _boundary(self, letter: str) -> str:
        """Return a boundary of words, which are ASCII; Python's would not be."""
        if self._end == r"\z":
            return f"\\{letter}"
        return f"(?a:\\{letter})"

    def _named_reference(self) -> str:
        self._at += 1
        found = NAME.match(self._source, self._at)
        if found is None or found[1] not in self._names:
            raise Invalid
        self._at = found.end()
        return self._reference(self._opened.get(found[1], self._groups + 1))

    def _reference(self, number: int) -> str:
        """Return a reference to a group: to one that is not closed yet it is empty, as in JavaScript."""
        self.looks_back = True
        return f"(?:(?({number})\\{number}|))" if number in self._closed else "(?:)"

    def _escaped(self) -> int | Ranges:
        """Return the character or the set that an escape means, in a class or outside."""
        letter = self._next()
        if letter.lower() in SETS:
            return SETS[letter] if letter in SETS else complement(SETS[letter.lower()])
        if letter in CONTROLS:
            return CONTROLS[letter]
        if letter in "01234567":
            self._at -= 1
            return self._octal()
        if letter in "xu":
            return self._hexadecimal(letter, 2 if letter == "x" else 4)
        if letter == "c":
            return self._control()
        return ord(letter)

    def _octal(self) -> int:
        found = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?").match(self._source, self._at)
        if found is None:
            raise Invalid
        self._at = found.end()
        return int(found[0], 8)

    def _hexadecimal(self, letter: str, digits: int) -> int:
        """Return the character of a number; without its digits the escape is the letter itself."""
        found = re.compile(f"[0-9A-Fa-f]{{{digits}}}").match(self._source, self._at)
        if found is None:
            return ord(letter)
        self._at = found.end()
        number = int(found[0], 16)
        return number + STAND_INS - SURROGATES if SURROGATES <= number < 0xE000 else number

    def _control(self) -> int:
        """Return a control character; without its letter the backslash stands for itself."""
        letter = self._ahead()
        if letter.isascii() and letter.isalpha():
            self._at += 1
            return ord(letter) % 32
        self._at -= 1
        return ord("\\")

    def _class(self) -> str:
        """Return a class; its opening bracket is behind."""
        negated = self._take("^")
        found: Ranges = []
        while not self._take("]"):
            low = self._member()
            if self._ahead() == "-" and self._source[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                found += span(low, self._member())
            else:
                found += whole(low)
        return self._set(found, negated=negated)

    def _member(self) -> int | Ranges:
        if not self._take("\\"):
            return ord(self._next())
        if self._take("b"):
            return 0x08
        return self._escaped()

    def _one(self, number: int) -> str:
        return self._character % number

    def _set(self, ranges: Ranges, *, negated: bool = False) -> str:
        """Return a class of ranges; of none it matches nothing, or anything."""
        if not ranges:
            ranges, negated = [(0, LAST)], not negated
        inner = "".join(f"{self._one(low)}-{self._one(high)}" for low, high in ranges)
        return f"[{'^' if negated else ''}{inner}]"


def whole(member: int | Ranges) -> Ranges:
    """Return a member of a class as ranges."""
    return [(member, member)] if isinstance(member, int) else member


def span(low: int | Ranges, high: int | Ranges) -> Ranges:
    """Return what `low-high` means in a class: with a set on a side, both and the hyphen. Raises `Invalid`."""
    if isinstance(low, int) and isinstance(high, int):
        if low > high:
            raise Invalid
        return [(low, high)]
    return [*whole(low), (0x2D, 0x2D), *whole(high)]


def complement(ranges: Ranges) -> Ranges:
    """Return what is not in ranges, which ascend."""
    edges = [-1, *(edge for pair in ranges for edge in pair), LAST + 1]
    return [(edges[at] + 1, edges[at + 1] - 1) for at in range(0, len(edges), 2) if edges[at] + 1 < edges[at + 1]]
