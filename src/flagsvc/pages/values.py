"""Lists of values as people paste them: one on each line, or separated by commas; in double quotes where that is not clear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

VALUE: Final = re.compile(r'[ \t]*(?:(\\?)"((?:[^"]|"")*+)"[ \t]*(?=[,\n]|\Z)|([^,\n]*))(?:[,\n]|\Z)')
"""One value and what ends it: in quotes, where two stand for one, or as it is without blanks around it.

Reading takes linear time: quotes without an end are read to the end of the text once, or to the next single quote."""
ESCAPE: Final = re.compile(r"\\([r\\])")
"""What stands for a carriage return and a backslash, in quotes behind a backslash. A browser makes a line end of the first."""


def read_values(text: str) -> list[str]:
    """Return the values of a text, each once, in order. Empty ones without quotes are left out."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = VALUE.match(text, at)
        assert match is not None  # the second form takes anything
        at = match.end()
        mark, quoted, bare = match.groups()
        value = bare.strip() if quoted is None else unquote(quoted, escaped=bool(mark))
        if value or quoted is not None:
            found.append(value)
    return list(dict.fromkeys(found))


def show_values(values: Sequence[str]) -> str:
    """Return a text from which `read_values` reads the same values: one on each line."""
    return "\n".join([quote(each) if needs_quotes(each) else each for each in values])


def needs_quotes(value: str) -> bool:
    """Return whether a value would not be read as it is."""
    return (
        not value or value != value.strip() or value.startswith(('"', '\\"')) or any(each in value for each in ",\n\r")
    )


def quote(value: str) -> str:
    """Return a value in quotes; with escapes behind a backslash if it has a carriage return."""
    doubled = value.replace('"', '""')
    if "\r" not in value:
        return f'"{doubled}"'
    escaped = doubled.replace("\\", "\\\\").replace("\r", "\\r")
    return f'\\"{escaped}"'


def unquote(text: str, *, escaped: bool) -> str:
    """Return the value of a text that stood in quotes."""
    single = text.replace('""', '"')
    return ESCAPE.sub(lambda found: "\r" if found[1] == "r" else "\\", single) if escaped else single
