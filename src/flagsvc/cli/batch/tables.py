"""Prints results: as tables on a terminal, as plain lines elsewhere (a pipe, NO_COLOR, a dumb terminal). Asks for confirmation."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from flagsvc.cli.batch.changes import KINDS, ImportChanges
from flagsvc.cli.batch.server_errors import FileViolation
from flagsvc.server.store.batch.facts import ImportProblem
from flagsvc.settings.kinds import printable

LISTS = (("errors", "error", "red"), ("warnings", "warning", "yellow"), ("permissions", "missing permission", "red"))
"""Lists of a validation, with the title and the colour of their items."""
SIGNS = dict(zip(KINDS, ("+", "~", "=", "-"), strict=True))
COLOURS = dict(zip(KINDS, ("green", "yellow", "dim", "red"), strict=True))
Row = tuple[str, str, str, Sequence[str]]
"""Colour, kind, text, and the items below it."""
MAX_ITEMS = 200
"""The most items of one row on a terminal; plain lines show all."""


def is_rich_terminal(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether `stream` is a terminal that supports colours and boxes."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def show_problems(lists: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Show the errors, warnings and missing permissions of a validation."""
    print_rows(
        ("", "What", "Affected"),
        [
            (colour, title, format_message(item["message"]), format_items(item["affectedItems"]))
            for key, title, colour in LISTS
            for item in lists[key]
        ],
    )


def show_import_problems(found: Sequence[ImportProblem], unchecked: Sequence[str]) -> None:
    """Show further problems of an import, each message once with all its places, and what was not checked."""
    messages: dict[str, list[str]] = {}
    for each in found:
        messages.setdefault(each.message, []).append(": ".join(part for part in (each.flag, each.place) if part))
    rows: list[Row] = [
        ("red", "error", format_message(text).rstrip("."), format_items([each for each in at if each]))
        for text, at in messages.items()
    ]
    print_rows(("", "What", "Where"), rows + [("yellow", "not checked", format_message(text), ()) for text in unchecked])


def show_violations(found: Iterable[FileViolation]) -> None:
    """Show schema violations, each with its place in the file."""
    print_rows(("", "What", "Where"), [("red", "error", item.message, (item.place,)) for item in found])


def show_changes(found: ImportChanges) -> None:
    """Show the changes of an import, without unchanged flags."""
    changed = [change for change in found.flags if change.kind != "same"]
    rows = [
        (COLOURS[kind], f"{SIGNS[kind]} {kind}", printable(name, 300), format_items(details)) for name, kind, details in changed
    ]
    print_rows(("", "Flag", "What changes"), [*rows, *(("green", "+ new", printable(text, 300), ()) for text in found.others)])


def format_message(message: object) -> str:
    """Return a server's message without its final colon, because the items follow below."""
    return printable(str(message), 600).rstrip(": ")


def format_items(items: object) -> list[str]:
    """Return items as single-line texts."""
    return [printable(str(item), 300) for item in items] if isinstance(items, list | tuple) else []


def print_rows(heads: Sequence[str], rows: Sequence[Row]) -> None:
    if rows and is_rich_terminal(sys.stdout):
        print_table(heads, rows)
        return
    for _, kind, text, items in rows:
        print(f"{kind}: {text}")
        for item in items:
            print(f"  {item}")


def print_table(heads: Sequence[str], rows: Sequence[Row]) -> None:
    """Print rows as a table with rich, without markup in the texts. Two heads mean a table without the column of items."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*heads, box=box.ROUNDED, show_lines=any(len(row[3]) > 1 for row in rows))
    table.columns[0].no_wrap = True
    for colour, kind, text, items in rows:
        more = [f"… and {len(items) - MAX_ITEMS} more"] if len(items) > MAX_ITEMS else []
        below = "\n".join([*items[:MAX_ITEMS], *more])
        table.add_row(*(Text(kind, style=colour), Text(text), Text(below))[: len(heads)])
    Console().print(table)


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun: `1 flag`, `2 flags`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show a text and the elapsed time on standard error while the block runs, if that is a terminal."""
    if not is_rich_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(text, total=None)
        yield


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
