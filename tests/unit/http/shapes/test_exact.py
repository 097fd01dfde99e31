"""Shapes of files that people write: no coercion, and all problems are reported.

Dates of request bodies (import validation 2.2).
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from flagsvc.http.shapes import ShapeError, check, json_schema
from flagsvc.http.shapes.exact import Choice, Entry, Exact, List, place_of, problems
from flagsvc.http.shapes.scalars import is_date, is_date_time

TEXT = Exact("a text", lambda value: isinstance(value, str), {"type": "string"})
BOOK = Entry({"title": TEXT, "kind": Choice("novel", "poem"), "tags": List(TEXT)}, required=("title",))
SHELF = Entry({"books": List(BOOK)})

PROBLEMS: list[tuple[Any, list[tuple[str, str, str]]]] = [
    ({"books": [{"title": "Emma", "kind": "novel", "tags": ["a"]}]}, []),
    ({}, []),
    ({"books": None}, []),
    ([], [("rule", "expected an object", "")]),
    (None, [("rule", "expected an object", "")]),
    ({"books": {}}, [("rule", "expected a list", "books")]),
    ({"books": [None]}, [("rule", "expected an object", "books[0]")]),
    ({"books": [{}]}, [("missing", "title", "books[0]")]),
    ({"books": [{"title": None}]}, [("missing", "title", "books[0]")]),
    ({"books": [{"title": 5}]}, [("rule", "expected a text", "books[0].title")]),
    ({"books": [{"title": "a", "kind": "song"}]}, [("rule", "expected one of novel, poem", "books[0].kind")]),
    ({"books": [{"title": "a", "tags": [None]}]}, [("rule", "expected a text", "books[0].tags[0]")]),
    ({"books": [], 7: 1}, [("extra", "7", "")]),
    (
        {"books": [{"size": 1, "tags": ["a", 1, 2]}], "x": 1},
        [
            ("missing", "title", "books[0]"),
            ("rule", "expected a text", "books[0].tags[1]"),
            ("rule", "expected a text", "books[0].tags[2]"),
            ("extra", "size", "books[0]"),
            ("extra", "x", ""),
        ],
    ),
]


@pytest.mark.parametrize(("value", "expected"), PROBLEMS, ids=repr)
def test_every_problem_is_told_with_its_place(value: Any, expected: list[tuple[str, str, str]]) -> None:
    """An object tells first of its properties, in their order, then of unknown keys. The schema refuses what has problems."""
    assert [(fault.kind, fault.text, place_of(fault)) for fault in problems(SHELF, value)] == expected
    if value != {"books": [], 7: 1}:
        assert jsonschema_rs.validator_for(json_schema(SHELF)).is_valid(value) is (not expected)
    if expected:
        with pytest.raises(ShapeError):
            check(SHELF, value)
    else:
        assert check(SHELF, value) is value


def test_an_unknown_key_knows_its_neighbours() -> None:
    """An unknown key has the known keys, so that the nearest one can be named."""
    (fault,) = problems(BOOK, {"title": "a", "titel": "b"})
    assert fault.allowed == ("title", "kind", "tags")


GOOD = (
    *("2024-01-28T15:21:39Z", "2024-01-28t15:21:39z", "2024-01-28 15:21:39", "2024-01-28\u00a015:21:39.123456789"),
    *("2024-02-29T00:00:00", "2000-02-29T00:00:00", "0000-02-29T00:00:00", "2024-01-28T15:21:39+01"),
    *("2024-01-28T15:21:39+0100", "2024-01-28T15:21:39-01:00", "2024-01-28T23:59:60Z", "2024-01-28T15:21:39+99:99"),
)
BAD = (
    *("", "2024-01-28", "2024-01-28T15:21Z", "2024-01-28T24:00:00Z", "2024-01-28T12:00:60Z", "2024-01-28T12:60:00Z"),
    *("2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z"),
    *("2024-01-00T00:00:00Z", "2024-04-31T00:00:00Z", "2024-01-28T15:21:39.Z", "2024-01-28T15:21:39Z\n"),
    *("2024-01-28  15:21:39", "2024-01-28T15:21:39 Z", "24-01-28T15:21:39", "2024-01-28_15:21:39", "\u0662024-01-28"),
    *("2024-01-28\x8515:21:39", "2024-01-28T15:21:39+1"),
)


@pytest.mark.parametrize("text", [*GOOD, *BAD])
def test_a_date_time(text: str) -> None:
    """A day of the calendar, one separator, a time with seconds; fraction and zone as one likes. Anything else is none."""
    assert is_date_time(text) is (text in GOOD)


def test_a_date() -> None:
    """A day of the calendar alone."""
    assert is_date("2024-02-29")
    assert not is_date("2023-02-29")
    assert not is_date("2024-02-29T00:00:00Z")
