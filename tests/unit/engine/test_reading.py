"""What is read of a part of a document as JavaScript reads it."""

from __future__ import annotations

import pytest

from flagsvc.engine.reading import Oddities, read_key


@pytest.mark.parametrize(
    ("owner", "name", "is_odd"),
    [
        ({"key": "a"}, "a", False),
        ({}, "undefined", False),
        ({"key": ["a"]}, "a", True),
        ({"key": {}}, "[object Object]", True),
    ],
)
def test_a_name_is_a_key_of_javascript(owner: dict[str, object], name: str, is_odd: bool) -> None:
    """Any value becomes a text; a list or an object is odd, and its place is noted."""
    odd = Oddities()
    assert read_key(owner, "key", "part", odd) == name
    assert (odd.first is not None and odd.first.path == "part.key") is is_odd
