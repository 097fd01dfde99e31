"""The table of the types of events."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import flagsvc.server
from flagsvc.server.store.event_kinds import KINDS, ROWS, EventKind, kind_of, words_of

SOURCES = Path(flagsvc.server.__file__).parent
THINGS = sorted({row.type.split("-")[0] for row in ROWS})
TYPE = re.compile(rf'"((?:{"|".join(THINGS)})-[a-z-]+)"')
PLACE = {"by": "ada", "feature": "cart", "environment": "production", "project": "shop"}


def test_every_type_that_is_written_has_a_row_and_every_row_is_written() -> None:
    """Each type that a module of the server names has its one row in the table, and no row is left over."""
    assert len(KINDS) == len(ROWS)
    found = {
        name
        for path in SOURCES.rglob("*.py")
        if "migrations" not in path.parts and path.name != "event_kinds.py"
        for text in [path.read_text()]
        if "record_" in text or "Writer(" in text
        for name in TYPE.findall(text)
    }
    ends = {"feature-environment-enabled", "feature-environment-disabled"}
    assert set(KINDS) <= found | ends
    assert {name for name in found if name.endswith(("ed", "on", "off", "add", "update", "remove"))} <= set(KINDS)


@pytest.mark.parametrize("kind", ROWS, ids=[row.type for row in ROWS])
def test_each_row_is_a_sentence(kind: EventKind) -> None:
    """Words name the author first, and every place in them is filled."""
    said = words_of(kind, PLACE, None, {"name": "x"})
    assert said.startswith("**ada** ")
    assert "None" not in said
    assert "{" not in said


SIDES = ({"name": "a", "position": 1}, {"name": "b", "position": 2})


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("feature-strategy-update", ({"name": "b"}, {"name": "a"})),
        ("feature-environment-enabled", (None, None)),
        ("segment-updated", (SIDES[1], SIDES[0])),
        ("strategy-updated", (SIDES[1], None)),
        ("strategy-deprecated", ({"name": "b"}, None)),
        ("feature-metadata-updated", ({"name": "b"}, {"name": "a"})),
        ("one-of-tomorrow", (SIDES[1], SIDES[0])),
    ],
)
def test_a_row_says_what_the_real_server_shows(kind: str, shown: object) -> None:
    """`data` and `preData` are those parts of both sides that the real server has. A type of another version shows both."""
    assert kind_of(kind).shown(*SIDES) == shown
    assert words_of(kind_of("one-of-tomorrow"), PLACE, None, None) == "**ada**: one-of-tomorrow"


def test_what_is_deleted_is_shown_as_it_was() -> None:
    """Where the real server has the deleted thing as `data`, it comes from what was before."""
    assert kind_of("strategy-deleted").shown(SIDES[0], None) == ({"name": "a"}, None)
    assert kind_of("pat-deleted").shown(SIDES[0], None) == (SIDES[0], None)
    assert kind_of("feature-deleted").shown(SIDES[0], None) == (None, {"name": "a"})
