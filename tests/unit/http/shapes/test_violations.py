"""The place of a violation, and the order of violations (import validation 3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.http.shapes import Array, Detail, Enum, Integer, Map, Object, ShapeError, String, check
from flagsvc.http.shapes.text import as_string, keys_in_order, to_json

TEXT = String()
THING = Object({"a": TEXT, "b": Array(Object({"c": TEXT}, required=("c",), closed=True))}, closed=True)


def details(shape: Any, value: Any, place: str = "/body") -> list[Detail]:
    """Return the error items of a value."""
    with pytest.raises(ShapeError) as caught:
        check(shape, value, place)
    return caught.value.details


def test_a_missing_property() -> None:
    """The path of the object comes first, then the path of the missing property."""
    item = details(THING, {"b": [{"c": "x"}, {}]})[0]
    assert item["message"] == "The `/body/b/1/c` property is required. It was not present on the data you sent."
    assert next(iter(item.items())) == ("path", "/body/b/1/c")


def test_a_property_too_many() -> None:
    """Path first, and the object as well as the property; a slash in the name stays."""
    item = details(THING, {"b": [{"c": "x", "a/b": 1}]})[0]
    assert item["message"] == (
        "The `/body/b/0` object of the request body does not allow additional properties. "
        "Your request included the `/body/b/0/a/b` property."
    )
    assert next(iter(item.items())) == ("path", "/body/b/0/a/b")


def test_a_property_too_many_without_a_name() -> None:
    """The path of a property with an empty name is that of its object."""
    assert details(THING, {"": 1})[0]["path"] == "/body"


def test_a_property_too_many_of_what_has_no_place() -> None:
    """If the value has no place, its object is called root."""
    item = details(THING, {"z": 1}, "")[0]
    assert item["message"].startswith("The root object of the request body does not allow")
    assert item["path"] == "z"


ORDER: list[tuple[Any, str]] = [
    ([], "/body"),  # type before all
    ({"z": 1, "y": 1, "q": []}, "/body/q1"),  # what is missing before what is too much
    ({"q1": [], "z": 1, "y": 1}, "/body/q2"),  # in the order of the required
    ({"q2": 1, "q1": [], "z": 1, "y": 1, "a": []}, "/body/z"),  # what is too much before properties, in the order sent
    ({"z": 1, "q2": 1, "q1": 1, "7": 1, "3": 1}, "/body/3"),  # but indices come first
    ({"b": [{}, []], "a": [], "q2": [], "q1": []}, "/body/a"),  # properties in the order of the shape
    ({"b": [{}, []], "q2": [], "q1": []}, "/body/b/0/c"),  # depth first
    ({"b": [{"c": 1}, [], {}], "q2": [], "q1": []}, "/body/b/1"),  # by index
    ({"b": [], "q2": [], "q1": []}, "/body/q1"),
]


@pytest.mark.parametrize(("value", "path"), ORDER)
def test_the_first_violation_is_the_one_that_is_told(value: Any, path: str) -> None:
    """Type, then required in order, then extras as sent, then properties in the order of the shape, depth first."""
    shape = Object({**THING.properties, "q1": TEXT, "q2": TEXT}, required=("q1", "q2"), closed=True)
    assert [item["path"] for item in details(shape, value)] == [path]


@pytest.mark.parametrize(
    ("key", "path", "sent"),
    [
        ("a", "/body/a", "[]"),
        ("a/b", "/body/a~1b", "undefined"),
        ("a~b", "/body/a~0b", "undefined"),
        ("", "/body/", '{"0":"5","":[]}'),
    ],
)
def test_a_key_of_any_form_in_a_path(key: str, path: str, sent: str) -> None:
    """A slash is written ~1 and its value cannot be shown; an empty key shows the object, as far as it was coerced."""
    item = details(Map(TEXT), {"0": 5, key: []} if not key else {key: []})[0]
    assert item == {"message": f"The `{path}` property must be string. You sent {sent}.", "path": path}


def test_a_choice_under_a_key_that_cannot_be_read() -> None:
    """A value that cannot be shown is undefined there as well, and an object is shown as JavaScript names it."""
    assert 'You provided "undefined"' in details(Map(Enum("a")), {"x/y": "b"})[0]["message"]
    assert 'You provided "[object Object]"' in details(Map(Enum("a")), {"": "b"})[0]["message"]


def test_a_place_below_others() -> None:
    """The paths in the items are below any given place."""
    assert details(Object({"a": Integer()}), {"a": "x"}, "/query")[0] == {
        "message": 'The `/query/a` property must be integer. You sent "x".',
        "path": "/query/a",
    }


def test_what_came_before_is_shown_as_coerced() -> None:
    """An object is shown with those of its members coerced that were checked before."""
    shape = Object({"a": TEXT, "b": Map(TEXT)})
    assert details(shape, {"a": 1, "b": {"": {}, "1": 1.0}})[0]["message"].endswith('You sent {"1":"1","":{}}.')


JSON_TEXTS: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    (1.0, "1"),
    (-0.0, "0"),
    (1e21, "1e+21"),
    (2**63, "9223372036854776000"),
    (float("inf"), "null"),
    (float("nan"), "null"),
    ('a"\\\n\x7f\x1f\u2028\u00e4', '"a\\"\\\\\\n\x7f\\u001f\u2028\u00e4"'),
    ("\ud800", '"\\ud800"'),
    ([], "[]"),
    ({}, "{}"),
    ({"b": [1, {"c": None}], "10": 1, "9": 2, "01": 3}, '{"9":2,"10":1,"b":[1,{"c":null}],"01":3}'),
]


@pytest.mark.parametrize(("value", "text"), JSON_TEXTS)
def test_the_text_of_a_value(value: Any, text: str) -> None:
    """The text equals JSON.stringify: compact, numbers as in JavaScript, indices first, lone surrogates escaped."""
    assert to_json(value) == text


def test_the_text_of_a_deep_value() -> None:
    """Depth costs no recursion."""
    value: Any = 1
    for _ in range(50_000):
        value = [{"a": value}]
    assert to_json(value) == '[{"a":' * 50_000 + "1" + "}]" * 50_000


def test_what_json_does_not_know_has_a_text_too() -> None:
    """A value of YAML, such as a date, or a key that is not a text, is shown and does not raise."""
    assert to_json({1: {2}}) == '{"1":"{2}"}'


@pytest.mark.parametrize(
    ("value", "text"), [(None, "null"), (True, "true"), (1.0, "1"), ("a", "a"), ({}, "[object Object]")]
)
def test_the_string_of_a_value(value: Any, text: str) -> None:
    """The text equals JavaScript's String(value)."""
    assert as_string(value) == text


def test_the_order_of_keys() -> None:
    """Indices below 2**32 - 1 ascending, all others as they came."""
    names = ["b", "4294967295", "4294967294", "a", "-1", "1", "00", "0"]
    assert keys_in_order(names) == ["0", "1", "4294967294", "b", "4294967295", "a", "-1", "00"]
    assert json.loads(to_json(dict.fromkeys(names))) == dict.fromkeys(names)


def test_a_problem_is_a_pointer_and_a_rule() -> None:
    """The problem has the form of JSON validators, without the sent value."""
    for value, expected in (
        ({"b": [{}]}, ("/at/b/0", "must have required property 'c'")),
        ({"b": [{"c": "x", "d/e": 1}]}, ("/at/b/0", "must NOT have additional properties")),
        ({"b": [{"c": []}]}, ("/at/b/0/c", "must be string")),
    ):
        with pytest.raises(ShapeError) as caught:
            check(THING, value, "/at")
        assert caught.value.problem == expected
