"""The text of env files as people write them: for docker, for compose, for a shell.

Only a text that grows too large raises an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from flagsvc.cli.migrating.interpolation import Lookup, Meter, fill
from flagsvc.core.files import MIB

LARGEST = MIB
"""The most bytes of an env file."""

ASSIGNMENT = re.compile(r"[ \t]*(?:export[ \t]+)?([^\s=#'\"]+)[ \t]*=")
NAME_ALONE = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*$")
NOTHING = re.compile(r"[ \t]*(?:#.*)?$")
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


def parse_env(
    text: str, lookup: Lookup, where: str = "the file", *, braces_only: bool = False, raw: bool = False
) -> EnvText:
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
            elif not NOTHING.match(line):
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
        """Return a value with its variables replaced."""
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
