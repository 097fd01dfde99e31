"""`$NAME`, `${NAME}` and `${NAME:-default}` in a text, as compose files have them. No text raises an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Lookup: TypeAlias = Callable[[str], str | None]
"""Returns the value of a variable, or None."""

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
PLAIN = re.compile(NAME)
BRACED = re.compile(rf"({NAME})(?:(:?[-?+])(.*))?", re.DOTALL)
MAX_DEPTH = 20
"""The most defaults within defaults. What is deeper stays as it is."""


class Filled(NamedTuple):
    """A text with the values of its variables, and the names of variables that have none."""

    text: str
    missing: tuple[str, ...]


def fill(text: str, lookup: Lookup, *, braces_only: bool = False, depth: int = 0) -> Filled:
    """Return a text with its variables replaced; a missing one is empty. `$$` is a dollar sign.

    `braces_only` replaces only `${…}`, for files in which a lone dollar sign may be part of a password.
    """
    parts: list[str] = []
    missing: list[str] = []
    place = 0
    while (found := text.find("$", place)) >= 0:
        parts.append(text[place:found])
        filled, place = _variable(text, found, lookup, braces_only, depth)
        parts.append(filled.text)
        missing += filled.missing
    return Filled("".join([*parts, text[place:]]), tuple(dict.fromkeys(missing)))


def _variable(text: str, start: int, lookup: Lookup, braces_only: bool, depth: int) -> tuple[Filled, int]:
    """Return what replaces the variable at a dollar sign, and where the text goes on."""
    follows = text[start + 1 : start + 2]
    if follows == "{" and depth < MAX_DEPTH:
        end = _closing(text, start + 2)
        braced = BRACED.fullmatch(text[start + 2 : end]) if end else None
        if braced:
            return _value(braced, lookup, braces_only, depth), end + 1
    elif not braces_only and follows == "$":
        return Filled("$", ()), start + 2
    elif not braces_only and (plain := PLAIN.match(text, start + 1)):
        value = lookup(plain[0])
        return Filled(value or "", () if value is not None else (plain[0],)), plain.end()
    return Filled("$", ()), start + 1


def _closing(text: str, start: int) -> int:
    """Return the place of the brace that closes one before `start`, 0 if there is none."""
    depth = 1
    for found in re.finditer(r"\$\{|\}", text[start:]):
        depth += 1 if found[0] != "}" else -1
        if not depth:
            return start + found.start()
    return 0


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
