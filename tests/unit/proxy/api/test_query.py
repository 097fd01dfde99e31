"""Query strings, piece by piece, and the limits of a context. `tests/property/test_query_twin.py` compares a slow twin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flagsvc.engine.context import Context
from flagsvc.proxy.api.query import ContextLimits, read_lenient_query, read_query, split_name
from support.serving import attempt


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


@pytest.mark.parametrize("read", [read_query, read_lenient_query])
@pytest.mark.parametrize(
    ("name", "known"),
    [("region[]", "region"), ("region[0]", "region"), ("properties[region][]", "region"), ("properties[a]b]", "a")],
)
def test_a_property_by_a_name_with_brackets(read: Callable[[bytes], Context], name: str, known: str) -> None:
    """The entry of a list is a property, and of a name inside `properties` only what the first brackets hold counts."""
    assert read(f"{name}=x".encode()).properties == {known: "x"}


BOUNDS = ContextLimits(3, 5, 10)
TEXTS = st.text(max_size=7)


@given(st.dictionaries(TEXTS, TEXTS, max_size=5), TEXTS)
@example({"a": "", "b": "", "c": ""}, "")
@example({"names": "texts"}, "users")
def test_what_passes_is_within_bounds(properties: dict[str, str], user: str) -> None:
    """A context within the limits passes."""
    within = len(properties) <= 3 and all(len(text) <= 5 for text in (user, *properties, *properties.values()))
    found = attempt(BOUNDS.check, Context(user_id=user, properties=properties), "/at", "/in")
    assert (found is None) is within
