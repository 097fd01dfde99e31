"""Query strings, piece by piece; `tests/property/test_query_twin.py` compares the whole with a slow twin."""

from __future__ import annotations

import pytest

from flagsvc.proxy.api.query import read_query, split_name


@pytest.mark.parametrize(
    ("text", "decoded"),
    [("a", "a"), ("a+b", "a b"), ("%41+%2B", "A +"), ("%C3%A4", "ä"), ("%C3", "%C3"), ("%4", "%4"), ("%5b%", "[%")],
)
def test_components(text: str, decoded: str) -> None:
    """Decoded as a whole, or literal as a whole."""
    assert read_query(f"a={text}".encode()).properties == {"a": decoded}


@pytest.mark.parametrize(
    ("name", "segments"),
    [
        ("a[b]", ["a", "b"]),
        ("a[b][c]", ["a", "b", "c"]),
        ("a[b]x[c]", ["a", "b", "c"]),
        ("a[b]x", ["a", "b"]),
        ("a[[b]]", ["a", "[b]"]),
        ("a[b", ["a", "[b"]),
        ("[a]", ["a"]),
        ("[", ["["]),
        ("a[]", ["a", ""]),
    ],
)
def test_names(name: str, segments: list[str]) -> None:
    """Brackets nest."""
    assert split_name(name) == segments
