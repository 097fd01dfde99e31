"""What the commands show: tables on a terminal, plain lines where nobody looks at them (a pipe, NO_COLOR, a dumb terminal)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from flagsvc.cli.batch.changes import KINDS, Change, ImportChanges
from flagsvc.cli.batch.places import FileViolation
from flagsvc.settings.kinds import printable

if TYPE_CHECKING:
    from flagsvc.server.store.batch.server_facts import ImportProblem

LISTS = (("errors", "error", "red"), ("warnings", "warning", "yellow"), ("permissions", "missing permission", "red"))
"""List of a validation → what one of its items is called, and its colour."""
SIGNS = dict(zip(KINDS, ("+", "~", "=", "-"), strict=True))
COLOURS = dict(zip(KINDS, ("green", "yellow", "dim", "red"), strict=True))
Row = tuple[str, str, str, Sequence[str]]
"""Colour, what it is, the text, the items below it."""
MOST_ITEMS = 200
"""Items of one row that a terminal shows; lines in a pipe have them all."""


def fancy(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether `stream` is a terminal that wants colours and boxes."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def problems(lists: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Show the errors, warnings and missing permissions of a validation."""
    show(
        ("", "What", "Affected"),
        [
            (colour, title, said(item["message"]), names(item["affectedItems"]))
            for key, title, colour in LISTS
            for item in lists[key]
        ],
    )


def besides(found: Sequence[ImportProblem], unchecked: Sequence[str]) -> None:
    """Show what an import would refuse besides, what is wrong once with all its places, and what was not checked."""
    messages: dict[str, list[str]] = {}
    for each in found:
        messages.setdefault(each.message, []).append(": ".join(part for part in (each.flag, each.place) if part))
    rows: list[Row] = [
        ("red", "error", said(text).rstrip("."), names([each for each in at if each])) for text, at in messages.items()
    ]
    show(("", "What", "Where"), rows + [("yellow", "not checked", said(text), ()) for text in unchecked])


def violations(found: Iterable[FileViolation]) -> None:
    """Show violations of the schema, each with its place in the file."""
    show(("", "What", "Where"), [("red", "error", item.message, (item.place,)) for item in found])


def changes(found: ImportChanges) -> None:
    """Show what an import would change; of flags that stay as they are only the number."""
    told = [change for change in found.flags if change.kind != "same"]
    rows = [(COLOURS[change.kind], *marked(change)) for change in told]
    show(
        ("", "Flag", "What changes"), [*rows, *(("green", "+ new", printable(text, 300), ()) for text in found.others)]
    )


def marked(change: Change) -> tuple[str, str, Sequence[str]]:
    """Return the sign and kind, the name and the details of a change."""
    return f"{SIGNS[change.kind]} {change.kind}", printable(change.name, 300), names(change.details)


def said(message: object) -> str:
    """Return a message of the server; the items stand below, so that it needs no colon."""
    return printable(str(message), 600).rstrip(": ")


def names(items: object) -> list[str]:
    """Return items as texts of one line."""
    return [printable(str(item), 300) for item in items] if isinstance(items, list | tuple) else []


def show(heads: Sequence[str], rows: Sequence[Row]) -> None:
    """Print rows, on a terminal as a table."""
    if rows and fancy(sys.stdout):
        table(heads, rows)
        return
    for _, kind, text, items in rows:
        print(f"{kind}: {text}")
        for item in items:
            print(f"  {item}")


def table(heads: Sequence[str], rows: Sequence[Row]) -> None:
    """Print rows as a table of rich's, without items where only two columns have a head; nothing in them is taken for markup."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(*heads, box=box.ROUNDED, show_lines=any(len(row[3]) > 1 for row in rows))
    shown.columns[0].no_wrap = True
    for colour, kind, text, items in rows:
        more = [f"… and {len(items) - MOST_ITEMS} more"] if len(items) > MOST_ITEMS else []
        below = "\n".join([*items[:MOST_ITEMS], *more])
        shown.add_row(*(Text(kind, style=colour), Text(text), Text(below))[: len(heads)])
    Console().print(shown)


def number(count: int, noun: str) -> str:
    """Return a number of things in words: `1 flag`, `2 flags`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show on standard error, while the block runs, what is being done and for how long; nothing where it is no terminal."""
    if not fancy(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(text, total=None)
        yield
