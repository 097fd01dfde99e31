"""The text of a seed file: JSON or YAML, no key twice, not nested too deeply."""

from __future__ import annotations

import json

import pytest

from flagsvc.http.shapes import Anything
from flagsvc.server.store.seed.file import read_text

TWICE = {
    "features:\n  - name: a\nusers: []\nfeatures: []\n": "has the key `features` twice: line 4, column 1",
    "features:\n  - {name: a, name: b}\n": "has the key `name` twice: line 2, column 15",
    '{"features": [{"name": "a", "name": "b"}]}': "has the key `name` twice in one object",
}


@pytest.mark.parametrize("text", TWICE)
def test_a_key_that_is_there_twice(text: str) -> None:
    """A duplicate key is an error, because the first value would be lost silently. For YAML the error has the position."""
    with pytest.raises(ValueError, match=TWICE[text]):
        read_text(text.encode(), Anything())


def test_what_is_merged_may_be_said_again() -> None:
    """A YAML merge gives default values, and the object may override them."""
    text = "a: &a {x: 1, y: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, y: 3}\n"
    assert read_text(text.encode(), Anything()) == {"a": {"x": 1, "y": 1}, "b": {"x": 2, "y": 1}, "c": {"x": 2, "y": 3}}


@pytest.mark.parametrize("content", [b"[" * 100_000, b"- " * 20_000 + b"a", b'{"a":' * 100_000])
def test_deep_nesting(content: bytes) -> None:
    """Deep nesting raises ValueError that says so."""
    with pytest.raises(ValueError, match="nested too deeply"):
        read_text(content, Anything())


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_in_any_indentation(indent: int | str | None) -> None:
    """JSON is read with any indentation."""
    content = {"a": [1, {"b": None}]}
    assert read_text(json.dumps(content, indent=indent).encode(), Anything()) == content
