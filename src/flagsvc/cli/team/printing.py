"""Prints lists as columns of text, for people and for pipes alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from flagsvc.settings.kinds import printable

LONGEST = 60
"""The most characters of a cell."""


def print_json(value: object) -> None:
    """Print a value as JSON for people and programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_columns(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below their heads, each column as wide as its widest cell. None and the empty text are a dash."""
    cells = [list(heads), *([printable(_text(each), LONGEST) for each in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(heads))]
    for row in cells:
        print("  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def _text(value: object) -> str:
    return "-" if value is None or value == "" else str(value)


def day_and_minute(moment: str | None) -> str | None:
    """Return a time of the API as `2024-01-31 12:00`, in UTC."""
    return None if moment is None else moment[:16].replace("T", " ")
