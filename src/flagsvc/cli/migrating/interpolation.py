"""`$NAME`, `${NAME}` and `${NAME:-default}` in a text, as compose files have them. No text raises an error, but its lookup may."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from flagsvc.core.errors import ConfigurationError
from flagsvc.core.files import MIB
from flagsvc.settings.kinds import printable

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


def _variable(
    text: str, start: int, ends: dict[int, int], lookup: Lookup, braces_only: bool, depth: int
) -> tuple[Filled, int]:
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
