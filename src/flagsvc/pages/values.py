"""Lists of values as people paste them: one on each line, or separated by commas; in double quotes where that is not clear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

VALUE: Final = re.compile(r'[ \t]*(?:"((?:[^"]|""){0,300}+)"[ \t]*(?=[,\n]|\Z)|([^,\n]*))(?:[,\n]|\Z)')
"""One value and what ends it: in quotes, where two stand for one, or as it is without blanks around it.

A value in quotes has a bound, so that reading takes linear time."""


def read_values(text: str) -> list[str]:
    """Return the values of a text, each once, in order. Empty ones without quotes are left out."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = VALUE.match(text, at)
        assert match is not None  # the second form takes anything
        at = match.end()
        quoted, bare = match.groups()
        value = bare.strip() if quoted is None else quoted.replace('""', '"')
        if value or quoted is not None:
            found.append(value)
    return list(dict.fromkeys(found))


def show_values(values: Sequence[str]) -> str:
    """Return a text from which `read_values` reads the same values: one on each line."""
    return "\n".join([quote(each) if needs_quotes(each) else each for each in values])


def needs_quotes(value: str) -> bool:
    """Return whether a value would not be read as it is."""
    return not value or value != value.strip() or value.startswith('"') or "," in value or "\n" in value


def quote(value: str) -> str:
    """Return a value in quotes."""
    doubled = value.replace('"', '""')
    return f'"{doubled}"'
