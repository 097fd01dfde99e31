"""Prints lists as columns of text, for people and for pipes alike, and asks for confirmation."""

from __future__ import annotations

import json
import sys
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


def confirm(
    command: str, question: str, nothing_done: str, *, yes: bool, interactive: bool = True, shows: str = "--dry-run"
) -> int | None:
    """Return None if the user or --yes confirms; else print `nothing_done` and return the exit code.

    `interactive` is false if standard input contains a file instead of answers. `shows` is the option that only shows; empty if
    there is none.
    """
    if yes:
        return None
    if not (interactive and sys.stdin.isatty()):
        other = f", {shows} only shows" if shows else ""
        text = f"there is no terminal to ask at: --yes goes on without asking{other}"
        print(f"flagsvc {command}: {nothing_done}: {text}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return None
    print(nothing_done)
    return 1
