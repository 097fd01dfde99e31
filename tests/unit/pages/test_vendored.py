"""The files of others: each is the one that its row says, and every file in the folder is ours or has a row."""

from __future__ import annotations

import base64
from hashlib import sha384
from importlib.resources import files

import pytest

from flagsvc.pages.vendored import VENDORED, Vendored

FOLDER = files("flagsvc.pages").joinpath("static")
OURS = {"pages.js", "style.css", "symbol.svg"}


@pytest.mark.parametrize("row", VENDORED, ids=lambda each: each.name)
def test_a_file_is_what_its_row_says(row: Vendored) -> None:
    """Its digest is that of the row, and its name has the version of its package."""
    digest = base64.b64encode(sha384(FOLDER.joinpath(row.name).read_bytes()).digest()).decode()
    assert digest == row.sha384
    assert row.package.rpartition("@")[2] in row.name


def test_every_file_is_known() -> None:
    """No file of others comes in without a row."""
    assert {each.name for each in FOLDER.iterdir()} == OURS | {each.name for each in VENDORED}
