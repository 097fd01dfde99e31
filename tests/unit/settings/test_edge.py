"""The table of Edge's variables: each row says enough for its readers."""

from __future__ import annotations

import pytest

from flagsvc.settings.edge import BY_VARIABLE, ROWS, EdgeVariable, Fate, Takes
from flagsvc.settings.kinds import BOOLEAN
from flagsvc.settings.table import BY_NAME

HAVE_OPTIONS = (Fate.SAME, Fate.MILLISECONDS, Fate.REVERSED)


def test_a_variable_has_one_row() -> None:
    """No two rows have the same name."""
    assert len(BY_VARIABLE) == len(ROWS) > 80


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_whole(row: EdgeVariable) -> None:
    """A row has options if it can be translated by itself, and always a text. Milliseconds and switches fit their options."""
    assert row.here
    assert bool(row.options) == (row.fate in HAVE_OPTIONS)
    options = [BY_NAME[name] for name in row.options]
    if row.fate is Fate.MILLISECONDS:
        assert all(option.kind.metavar == "MS" for option in options) and row.default.isdecimal()
    if row.fate is Fate.REVERSED:
        assert row.takes is Takes.NOTHING and all(option.kind is BOOLEAN for option in options)


@pytest.mark.parametrize("row", [row for row in ROWS if row.options], ids=lambda row: row.name)
def test_the_text_names_the_variable_of_every_option(row: EdgeVariable) -> None:
    """What a user reads and what is translated are the same."""
    assert all(any(name in row.here for name in BY_NAME[option].reads) for option in row.options)
