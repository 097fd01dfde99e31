"""The text of env files as people write them, for docker, compose or a shell; and `${NAME:-default}` there and in compose files.

Only a text that grows too large raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from flagsvc.core.errors import ConfigurationError
from flagsvc.core.files import MIB
from flagsvc.settings.kinds import printable

LARGEST = MIB
"""The most bytes of an env file."""

ASSIGNMENT = re.compile(r"[ \t]*(?:export[ \t]+)?([^\s=#'\"]+)[ \t]*=")
NAME_ALONE = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*$")
BLANK_LINE = re.compile(r"[ \t]*(?:#.*)?$")
SINGLE = re.compile(r"[ \t]*'([^']*)'[ \t]*(?:#.*)?$", re.MULTILINE)
DOUBLE = re.compile(r'[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?$', re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"[ \t]#.*")
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass
class EnvText:
    """The variables of a text, the lines that are none, by number, and the variables that `${…}` asks for in vain."""

    values: dict[str, str] = field(default_factory=dict)
    odd_lines: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def parse_env(text: str, lookup: Lookup, where: str = "the file", *, braces_only: bool = False, raw: bool = False) -> EnvText:
    """Return the variables of the text of an env file. Raises ConfigurationError if the variables in its values make it too large.

    A value may be in quotes, also over several lines. A comment ends a value without quotes if there is a blank before it. A
    name alone takes the value that `lookup` has. `braces_only` is that of `fill`. `raw` takes every value as it is.
    """
    return _EnvReader(text, lookup, where, braces_only, raw).read()


class _EnvReader:
    """Reads one text, line by line."""

    def __init__(self, text: str, lookup: Lookup, where: str, braces_only: bool, raw: bool) -> None:
        self._text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._lookup = lookup
        self._metered = Meter(where).metered(self._look)
        self._braces_only = braces_only
        self._raw = raw
        self._found = EnvText()

    def read(self) -> EnvText:
        """Return everything that was found."""
        place, number = 0, 1
        while place < len(self._text):
            end = self._text.find("\n", place)
            line = self._text[place : end if end >= 0 else len(self._text)]
            after = place + len(line)
            if assigned := ASSIGNMENT.match(line):
                after = self._assign(assigned[1], place + assigned.end(), after)
            elif not BLANK_LINE.match(line):
                self._read_name(line, number)
            number += self._text.count("\n", place, after) + 1
            place = after + 1
        return self._found

    def _assign(self, name: str, start: int, end: int) -> int:
        """Read a value that starts at `start`, in a line that ends at `end`. Return where its last line ends."""
        value = self._text[start:end]
        single, double = SINGLE.match(self._text, start), DOUBLE.match(self._text, start)
        if self._raw:
            self._found.values[name] = value
            return end
        if single:
            self._found.values[name] = single[1]
            return single.end()
        if double:
            self._found.values[name] = ESCAPE.sub(lambda match: ESCAPES.get(match[1], match[1]), self._fill(double[1]))
            return double.end()
        self._found.values[name] = self._fill(COMMENT.sub("", value).strip())
        return end

    def _fill(self, value: str) -> str:
        filled = fill(value, self._metered, braces_only=self._braces_only)
        self._found.missing += filled.missing
        return filled.text

    def _look(self, name: str) -> str | None:
        """Return the value of a variable of this text, or of the environment."""
        return self._found.values.get(name, self._lookup(name))

    def _read_name(self, line: str, number: int) -> None:
        """Read a line without an equals sign: a name alone, or nothing that is known."""
        alone = NAME_ALONE.match(line)
        if alone is None:
            self._found.odd_lines.append(number)
        elif (value := self._lookup(alone[1])) is not None:
            self._found.values[alone[1]] = value


Lookup: TypeAlias = Callable[[str], str | None]
"""Returns the value of a variable, or None."""

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
PLAIN = re.compile(NAME)
BRACED = re.compile(rf"({NAME})(?:(:?[-?+])(.*))?", re.DOTALL)
BRACE = re.compile(r"\$\{|\}")
MAX_DEPTH = 20
"""The most defaults within defaults. What is deeper stays as it is."""
MOST_EXPANDED = MIB
"""The most characters that the values of variables add to a file: forty lines `A2=$A1$A1` could fill the memory."""


class Filled(NamedTuple):
    """A text with the values of its variables, and the names of variables that have none."""

    text: str
    missing: tuple[str, ...]


class Meter:
    """Counts the characters that come into a file from elsewhere. `where` is the file, ready to be shown."""

    def __init__(self, where: str, most: int = MOST_EXPANDED) -> None:
        self._where = where
        self._most = self._left = most

    def count(self, characters: int, cause: str) -> None:
        """Count what comes with `cause`. Raises ConfigurationError if the file gets too many characters."""
        self._left -= characters
        if self._left < 0:
            shown = printable(cause, 300)
            raise ConfigurationError([f"`{self._where}`: with `{shown}` it gets more than {self._most} characters"])

    def metered(self, lookup: Lookup) -> Lookup:
        """Return a lookup that counts its values."""

        def look(name: str) -> str | None:
            value = lookup(name)
            self.count(len(value or ""), name)
            return value

        return look


def fill(text: str, lookup: Lookup, *, braces_only: bool = False, depth: int = 0) -> Filled:
    """Return a text with its variables replaced; a missing one is empty. `$$` is a dollar sign.

    `braces_only` replaces only `${…}`, for files in which a lone dollar sign may be part of a password.
    """
    parts: list[str] = []
    missing: list[str] = []
    place, ends = 0, _closings(text)
    while (found := text.find("$", place)) >= 0:
        parts.append(text[place:found])
        filled, place = _variable(text, found, ends, lookup, braces_only, depth)
        parts.append(filled.text)
        missing += filled.missing
    return Filled("".join([*parts, text[place:]]), tuple(dict.fromkeys(missing)))


def _variable(text: str, start: int, ends: dict[int, int], lookup: Lookup, braces_only: bool, depth: int) -> tuple[Filled, int]:
    """Return what replaces the variable at a dollar sign, and where the text goes on."""
    follows = text[start + 1 : start + 2]
    if follows == "{" and depth < MAX_DEPTH:
        end = ends.get(start, 0)
        braced = BRACED.fullmatch(text, start + 2, end) if end else None
        if braced:
            return _value(braced, lookup, braces_only, depth), end + 1
    elif not braces_only and follows == "$":
        return Filled("$", ()), start + 2
    elif not braces_only and (plain := PLAIN.match(text, start + 1)):
        value = lookup(plain[0])
        return Filled(value or "", () if value is not None else (plain[0],)), plain.end()
    return Filled("$", ()), start + 1


def _closings(text: str) -> dict[int, int]:
    """Return the place of the brace that closes each `${`, by the place of its dollar sign."""
    opened: list[int] = []
    found: dict[int, int] = {}
    for brace in BRACE.finditer(text):
        if brace[0] != "}":
            opened.append(brace.start())
        elif opened:
            found[opened.pop()] = brace.start()
    return found


def _value(braced: re.Match[str], lookup: Lookup, braces_only: bool, depth: int) -> Filled:
    """Return what replaces a variable in braces: its value, or what its operator says."""
    name, operator, other = braced[1], braced[2] or "", braced[3] or ""
    value = lookup(name)
    is_set = value is not None and (bool(value) or not operator.startswith(":"))
    if operator.endswith(("-", "+")) and is_set is operator.endswith("+"):
        return fill(other, lookup, braces_only=braces_only, depth=depth + 1)
    if operator.endswith("+"):
        return Filled("", ())
    return Filled(value or "", () if is_set or (value is not None and not operator) else (name,))
