"""Laws of shapes, for any JSON (import validation 2.1; 3)."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.shapes import (
    AnyOf,
    Array,
    Boolean,
    Enum,
    Integer,
    Map,
    Nullable,
    Number,
    Object,
    OneOf,
    Shape,
    ShapeError,
    String,
    check,
)
from flagsvc.server.shapes.batch import EXPORT_QUERY, IMPORT
from support import shape_bodies

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
WORDS = st.sampled_from([*shape_bodies.TEXTS, *shape_bodies.NUMBERS])
KEYS = st.sampled_from(["a", "b", "c", "7", "a/b", "", "~"])
JSON = st.recursive(
    SCALARS | WORDS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def leaves() -> st.SearchStrategy[Shape]:
    """Return shapes of scalars."""
    texts = st.builds(String, min_length=st.integers(0, 2), format=st.sampled_from(["", "date", "date-time"]))
    bounds = st.none() | st.integers(-1, 5)
    numbers = st.builds(Number, minimum=bounds, maximum=bounds) | st.builds(Integer, minimum=bounds)
    return texts | numbers | st.just(Boolean()) | st.just(Enum("a", "5", "true")) | st.just(String())


def holding(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    """Return shapes that hold others."""
    rows = st.dictionaries(KEYS, inner, max_size=3)
    return (
        st.builds(Array, inner)
        | st.builds(Map, inner)
        | st.builds(Object, rows, closed=st.booleans(), required=st.lists(KEYS, max_size=1))
        | st.builds(Object, rows, rest=inner)
        | st.builds(Nullable, inner)
        | st.builds(AnyOf, inner, inner)
        | st.builds(OneOf, inner, inner)
    )


SHAPES = st.recursive(leaves(), holding, max_leaves=6)


def checked(shape: Shape, value: Any) -> tuple[Any, bool]:
    """Return what a shape makes of a copy of a value and whether it takes it; no other error may come."""
    try:
        return check(shape, copy.deepcopy(value)), True
    except ShapeError as error:
        return told(error), False  # type: ignore[func-returns-value]


def told(error: ShapeError) -> None:
    """Hold the details of an error to their form."""
    assert error.details
    assert all(set(item) == {"path", "message"} for item in error.details)


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal and of the same types throughout, 1 not being true."""
    return json.dumps(one) == json.dumps(other)


def is_decided(shape: Shape) -> bool:
    """Return whether a shape says by itself what it is: no list of alternatives stands in it."""
    return not isinstance(shape, AnyOf | OneOf) and all(is_decided(part) for part in shape.below())


@given(SHAPES.filter(is_decided), JSON)
def test_what_was_coerced_checks_to_itself(shape: Shape, value: Any) -> None:
    """A coerced value conforms, and checking it again changes nothing."""
    taken, fits = checked(shape, value)
    if fits:
        again, still = checked(shape, taken)
        assert still
        assert alike(again, taken)


@given(SHAPES, JSON)
def test_nothing_but_a_shape_error_is_raised(shape: Shape, value: Any) -> None:
    """Any JSON value is taken or refused with at least one item."""
    checked(shape, value)


@given(SHAPES, JSON)
def test_every_item_is_below_the_place(shape: Shape, value: Any) -> None:
    """A path starts at the place that was named, except a choice's, which is the last part alone."""
    try:
        check(shape, copy.deepcopy(value), "/query")
    except ShapeError as error:
        for item in error.details:
            is_choice = "equal to one of the allowed values" in item["message"]
            assert is_choice or item["path"].startswith("/query")


@pytest.mark.parametrize("shape", [IMPORT, EXPORT_QUERY], ids=["import", "export"])
@given(seed=st.integers(0, 2**32))
def test_bodies_of_batches_keep_the_laws(shape: Shape, seed: int) -> None:
    """Mutated bodies are taken and then check to themselves, or are refused."""
    body = shape_bodies.import_body(random.Random(seed))
    taken, fits = checked(shape, body)
    if fits:
        assert alike(checked(shape, taken)[0], taken)


@pytest.mark.parametrize("place", ["", "project", "data"])
@pytest.mark.parametrize("depth", [10, 100_000])
def test_deep_nesting_is_refused_like_anything_else(place: str, depth: int) -> None:
    """A value of any depth is shown in full; its depth costs no recursion."""
    deep: Any = []
    for _ in range(depth):
        deep = [deep]
    body = {"project": "p", "environment": "e", "data": {}, place: deep} if place else deep
    with pytest.raises(ShapeError) as caught:
        check(IMPORT, body)
    if place:
        assert caught.value.details[0]["message"].endswith("[" * (depth + 1) + "]" * (depth + 1) + ".")
    while deep:  # taken apart from outside: freeing it whole would recurse
        deep = deep.pop()
