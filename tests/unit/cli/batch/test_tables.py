"""Output is a table on a terminal, and lines elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

from flagsvc.cli.batch import tables
from flagsvc.cli.batch.changes import Change, ImportChanges


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """Return True."""
        return True


Look = Callable[[Callable[[], None]], str]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """Return a function that calls another one and returns its output on a terminal of 60 columns."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")

    def seen(act: Callable[[], None]) -> str:
        stream = Terminal()
        with redirect_stdout(stream), redirect_stderr(stream):
            act()
        return stream.getvalue()

    return seen


@pytest.mark.parametrize(
    ("stream", "env", "fancy"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_when_there_are_tables(stream: Any, env: dict[str, str], fancy: bool) -> None:
    """There are tables on a terminal, unless TERM is `dumb` or NO_COLOR is not empty."""
    assert tables.is_rich_terminal(stream, env) is fancy


ITEM = {"message": "We [bold]found[/bold] these:", "affectedItems": ["one [red]", 2, *["more"] * 300]}


LISTS: dict[str, Any] = {"errors": [], "warnings": [], "permissions": []}


def wait() -> None:
    """Show a warning inside a progress display."""
    with tables.progress("importing [2] flags"):
        tables.show_problems(LISTS | {"warnings": [ITEM]})


def test_a_table(look: Look) -> None:
    """A table has colours, fits the terminal, and does not interpret the data as markup."""
    text = look(lambda: tables.show_problems(LISTS | {"errors": [ITEM]}))
    assert "\x1b[31merror" in text and "We [bold]found[/bold]" in text and "one [red]" in text
    assert "… and 102 more" in text
    assert all(len(re.sub("\x1b\\[[0-9;]*m", "", line)) <= 60 for line in text.splitlines())


def test_progress(look: Look) -> None:
    """On a terminal the progress line names the current action and is erased at the end."""
    text = look(wait)
    assert "importing [2] flags" in text and text.endswith("\x1b[2K")


def test_changes(look: Look) -> None:
    """Unchanged flags are not shown."""
    found = ImportChanges((Change("a", "new", ("off → on", "tags: + x")), Change("b", "same")), ("tag type t",))
    text = look(lambda: tables.show_changes(found))
    assert "+ new" in text and "off → on" in text and "tag type t" in text and "│ b" not in text
