"""Shapes of files that people write: no coercion, and all problems are reported."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from flagsvc.http.shapes import ShapeError, check, json_schema
from flagsvc.http.shapes.exact import Choice, Entry, Exact, List, place_of, problems

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
    """Of an object first what its properties are, in their order, then what it should not have."""
    assert [(fault.kind, fault.text, place_of(fault)) for fault in problems(SHELF, value)] == expected


@pytest.mark.parametrize(("value", "expected"), PROBLEMS, ids=repr)
def test_a_check_raises_for_what_has_problems(value: Any, expected: list[tuple[str, str, str]]) -> None:
    """As for any other shape; what has none is returned as it is."""
    if expected:
        with pytest.raises(ShapeError):
            check(SHELF, value)
    else:
        assert check(SHELF, value) is value


def test_an_unknown_key_knows_its_neighbours() -> None:
    """An unknown key has the known keys, so that the nearest one can be named."""
    (fault,) = problems(BOOK, {"title": "a", "titel": "b"})
    assert fault.allowed == ("title", "kind", "tags")


@pytest.mark.parametrize(("value", "expected"), [each for each in PROBLEMS if each[0] != {"books": [], 7: 1}], ids=repr)
def test_the_schema_says_the_same(value: Any, expected: list[tuple[str, str, str]]) -> None:
    """A value has no problems exactly if the schema accepts it."""
    assert jsonschema_rs.validator_for(json_schema(SHELF)).is_valid(value) is (not expected)
