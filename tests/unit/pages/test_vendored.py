"""The files of others: each is the one that its row says, and every file in the folder is ours or has a row.

CONTRIBUTING.md says how to renew a file.
"""

from __future__ import annotations

import base64
from hashlib import sha384
from importlib.resources import files
from typing import Final, NamedTuple

import pytest

FOLDER = files("flagsvc.pages").joinpath("static")
OURS = {"pages.js", "style.css", "symbol.svg"}


class Vendored(NamedTuple):
    """A file: its name with its version, the npm package and the path in it, its licence, and its SHA-384 in base64."""

    name: str
    package: str
    path: str
    licence: str
    sha384: str


VENDORED: Final = (
    Vendored(
        "htmx-4.0.1.min.js",
        "htmx.org@4.0.1",
        "dist/htmx.min.js",
        "0BSD",
        "Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn",
    ),
)


@pytest.mark.parametrize("row", VENDORED, ids=lambda each: each.name)
def test_a_file_is_what_its_row_says(row: Vendored) -> None:
    """Its digest is that of the row, and its name has the version of its package."""
    digest = base64.b64encode(sha384(FOLDER.joinpath(row.name).read_bytes()).digest()).decode()
    assert digest == row.sha384
    assert row.package.rpartition("@")[2] in row.name


def test_every_file_is_known() -> None:
    """No file of others comes in without a row."""
    assert {each.name for each in FOLDER.iterdir()} == OURS | {each.name for each in VENDORED}
