"""Values of JSON become texts, numbers and booleans as node converts them."""

from __future__ import annotations

import math
from typing import Any

from flagsvc.engine.values.jsvalue import MISSING, is_true, number_of, text_of
from support import javascript

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -5, 333.3, 1e300, 1e21, 10**20, -0.0),
    *("", " ", "500", " 5 ", "0x10", "x", "true", "null", "1e3"),
    *([], [None], [[]], [[], [1]], [1, [2, [3, None]], "x"], ["userId"], [50], [True], [{}], {}, {"a": 1}),
]


def test_values_are_those_of_node() -> None:
    """Text, number and truth of each value are equal; NaN and infinities are compared by their names."""
    function = "x => [String(x), String(Number(x)), Boolean(x), String(Object.is(Number(x), NaN))]"
    for value, (text, number, truth, is_nan) in zip(VALUES, javascript.apply(function, VALUES), strict=True):
        assert (text_of(value), is_true(value)) == (text, truth), value
        assert math.isnan(number_of(value)) if is_nan == "true" else number_of(value) == float(number), value


def test_what_is_missing() -> None:
    """It is `undefined`: false, and no number. Null is zero."""
    assert (text_of(MISSING), is_true(MISSING)) == ("undefined", False)
    assert math.isnan(number_of(MISSING)) and number_of(None) == 0


def test_a_deep_list_is_read_without_recursion() -> None:
    """A list in lists may be as deep as a document."""
    deep: list[Any] = [1]
    for _ in range(100_000):
        deep = [deep]
    assert text_of(deep) == "1"
    while deep and isinstance(deep[0], list):
        deep = deep[0]
