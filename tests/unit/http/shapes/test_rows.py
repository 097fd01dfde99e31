"""The rows one by one: what each takes, makes of a value and says of one it refuses (import validation 2.1; 3).

The place of a violation, and the order of violations (import validation 3).
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from flagsvc.http.shapes import (
    AnyOf,
    Anything,
    Array,
    Boolean,
    Detail,
    Enum,
    Integer,
    Map,
    Members,
    Named,
    Nullable,
    Number,
    Object,
    OneOf,
    OrNull,
    Record,
    Shape,
    ShapeError,
    String,
    check,
    json_schema,
)
from flagsvc.http.shapes.text import as_string, keys_in_order, to_json

TEXT = String()
MANY = 2**53 + 3

COERCED: list[tuple[Shape, Any, Any]] = [
    (TEXT, "a", "a"),
    (TEXT, 1.0, "1"),
    (TEXT, 12345678901234567890, "12345678901234567000"),
    (TEXT, 10**400, "Infinity"),
    (TEXT, -0.0, "0"),
    (TEXT, False, "false"),
    (TEXT, True, "true"),
    (TEXT, None, ""),
    (Nullable(TEXT), None, None),
    (Nullable(TEXT), 0, "0"),
    (Nullable(TEXT), "", ""),
    (Number(), None, 0),
    (Number(), True, 1),
    (Number(), False, 0),
    (Number(), "1e2", 100),
    (Number(), " ", 0),
    (Number(), "1.5", 1.5),
    (Number(), "Infinity", math.inf),
    (Number(), 10**400, math.inf),
    (Number(), -(10**400), -math.inf),
    (Number(), 7.0, 7),
    (Number(), MANY, float(2**53 + 4)),
    (Nullable(Number()), "", None),
    (Nullable(Number()), False, 0),
    (Integer(), 7.0, 7),
    (Integer(), "7", 7),
    (Integer(), None, 0),
    (Integer(), "-0", 0),
    (Integer(), 1e21, 1e21),
    (Integer(), 10**400, math.inf),
    (Boolean(), "true", True),
    (Boolean(), "false", False),
    (Boolean(), 1, True),
    (Boolean(), 1.0, True),
    (Boolean(), 0, False),
    (Boolean(), None, False),
    (Nullable(Boolean()), None, None),
    (Nullable(Boolean()), "", None),
    (Nullable(Boolean()), 0, False),
    (Nullable(Array(TEXT)), "", None),
    (OrNull(Number()), "5", 5),
    (OrNull(Number()), "x", None),
    (OrNull(Number(minimum=0)), -1, None),
    (Map(OrNull(Array(Integer()))), {"a": [1], "b": ["x"], "c": 1}, {"a": [1], "b": None, "c": None}),
    (Array(OrNull(Object({}, required=("a",)))), [{"a": 1}, {}, None], [{"a": 1}, None, None]),
    (Nullable(Array(TEXT)), 0, None),
    (Nullable(Object()), False, None),
    (Enum("1", "2"), 1, "1"),
    (Array(TEXT), [1, "a", None], ["1", "a", ""]),
    (Map(TEXT), {"a": 1, "b": "c"}, {"a": "1", "b": "c"}),
    (Object({"a": Integer()}), {"a": "1", "b": []}, {"a": 1, "b": []}),
    (Object({"a": Integer()}, rest=Boolean()), {"a": "1", "b": 0}, {"a": 1, "b": False}),
    (Anything(), {"a": [None]}, {"a": [None]}),
    (Named("n", Integer()), "1", 1),
    (AnyOf(Integer(), TEXT), "a", "a"),
    (AnyOf(Integer(), TEXT), "1", 1),
    (AnyOf(Object({"a": TEXT, "b": Array(TEXT)}), Object()), {"a": 1, "b": 2}, {"a": "1", "b": 2}),
    (OneOf(Integer(), Array(TEXT)), "1", 1),
]


@pytest.mark.parametrize(("shape", "value", "wanted"), COERCED)
def test_a_value_becomes_what_javascript_makes_of_it(shape: Shape, value: Any, wanted: Any) -> None:
    """Scalars become the type asked for; an integer that is exact is an int, whichever way it was written."""
    taken = check(shape, value)
    assert taken == wanted
    assert type(taken) is type(wanted)


REFUSED: list[tuple[Shape, Any, str]] = [
    (TEXT, [], "must be string. You sent []"),
    (Nullable(TEXT), ["a"], 'must be string. You sent ["a"]'),
    (Number(), "", 'must be number. You sent ""'),
    (Number(), "a", 'must be number. You sent "a"'),
    (Number(), "\u0661", 'must be number. You sent "\u0661"'),
    (Number(), math.nan, "must be number. You sent null"),
    (Number(minimum=0, maximum=1000), 10**400, "must be <= 1000. You sent null"),
    (Number(), [], "must be number. You sent []"),
    (Number(minimum=0, maximum=1000), -1, "must be >= 0. You sent -1"),
    (Number(minimum=0, maximum=1000), "1001", "must be <= 1000. You sent 1001"),
    (Number(maximum=1000), "Infinity", "must be <= 1000. You sent null"),
    (Integer(), 1.5, "must be integer. You sent 1.5"),
    (Integer(), "1.5", 'must be integer. You sent "1.5"'),
    (Integer(), "", 'must be integer. You sent ""'),
    (Integer(minimum=0), "-1", "must be >= 0. You sent -1"),
    (Boolean(), "yes", 'must be boolean. You sent "yes"'),
    (Boolean(), "", 'must be boolean. You sent ""'),
    (Boolean(), 2, "must be boolean. You sent 2"),
    (Array(TEXT), None, "must be array. You sent null"),
    (Array(TEXT), "a", 'must be array. You sent "a"'),
    (Array(TEXT, min_items=1), [], "must NOT have fewer than 1 items. You sent []"),
    (Array(TEXT, max_items=1), [1, 2], "must NOT have more than 1 items. You sent [1,2]"),
    (Object(), None, "must be object. You sent null"),
    (Object(), [], "must be object. You sent []"),
    (String(min_length=2), None, 'must NOT have fewer than 2 characters. You sent ""'),
    (String(min_length=2), 5, 'must NOT have fewer than 2 characters. You sent "5"'),
    (String(max_length=2), "abc", 'must NOT have more than 2 characters. You sent "abc"'),
    (String(min_length=2), "\U0001f600", 'must NOT have fewer than 2 characters. You sent "\U0001f600"'),
    (String(pattern="^(a+)+$"), "a" * 40 + "\n", f'must match pattern "^(a+)+$". You sent "{"a" * 40}\\n"'),
    (String(pattern="^a$"), "a\n", 'must match pattern "^a$". You sent "a\\n"'),
    (String(format="date-time"), 5, 'must match format "date-time". You sent "5"'),
    (Nullable(String(format="date-time")), "", 'must match format "date-time". You sent ""'),
]


@pytest.mark.parametrize(("shape", "value", "message"), REFUSED)
def test_a_refused_value_is_told_as_coerced(shape: Shape, value: Any, message: str) -> None:
    """The item names the place, the rule and the value as far as it was coerced, message before path."""
    with pytest.raises(ShapeError) as caught:
        check(shape, value)
    assert caught.value.details == [{"message": f"The `/body` property {message}.", "path": "/body"}]
    assert list(caught.value.details[0]) == ["message", "path"]
    assert message in str(caught.value)


def details(shape: Any, value: Any, place: str = "/body") -> list[Detail]:
    with pytest.raises(ShapeError) as caught:
        check(shape, value, place)
    return caught.value.details


def test_any_of_tells_each_alternative_and_then_itself() -> None:
    """One item for each alternative in order, then one for all; each alternative sees what those before it coerced."""
    shape = AnyOf(Object({"a": TEXT, "b": Array(TEXT)}), Object({"a": Integer()}, required=("a",)), base=Object())
    assert [item["message"] for item in details(shape, {"a": 1.5, "b": 2})] == [
        "The `/body/b` property must be array. You sent 2.",
        'The `/body/a` property must be integer. You sent "1.5".',
        'The `/body` property must match a schema in anyOf. You sent {"a":"1.5","b":2}.',
    ]


def test_any_of_holds_its_base_first_and_last() -> None:
    """The base's type is checked before the alternatives, its other rules after them."""
    shape = AnyOf(Object({"a": TEXT}), base=Object({"b": TEXT}, required=("b",)))
    with pytest.raises(ShapeError, match="must be object"):
        check(shape, [])
    with pytest.raises(ShapeError, match="`/body/b` property is required"):
        check(shape, {"a": 1})


@pytest.mark.parametrize("value", ["a", "5"])
def test_one_of_takes_exactly_one(value: str) -> None:
    """A value that fits no alternative, or two, is refused in the same words."""
    assert details(OneOf(Integer(), Boolean() if value == "a" else TEXT), value)[-1]["message"].startswith(
        'The "/body" property must match exactly one schema in oneOf. The data you provided matches more than one'
    )


def test_a_choice_is_told_by_its_last_part_with_two_dots() -> None:
    """A value that is no choice has only the last part of its path, all choices in order, and two dots at the end."""
    message = (
        'The `operator` property must be equal to one of the allowed values: "A", "B". '
        'You provided "5", which is not valid. Please use one of the allowed values instead..'
    )
    found = details(Object({"operator": Enum("A", "B")}), {"operator": 5})
    assert found == [{"message": message, "path": "operator"}]


def test_a_well_formed_value_is_given_back_itself() -> None:
    """Nothing is copied: the same objects come back."""
    inner = {"b": ["x"]}
    value = {"a": inner}
    shape = Object({"a": Object({"b": Array(TEXT)})})
    assert check(shape, value) is value
    assert value["a"] is inner


@pytest.mark.parametrize("pattern", ["(?=a)", "(a", r"(.)\1"])
def test_patterns_that_are_none(pattern: str) -> None:
    """A row whose pattern cannot be searched in linear time is a mistake of the program."""
    with pytest.raises(ValueError, match="not a pattern of RE2"):
        String(pattern=pattern)


def test_a_record_lists_its_properties_first() -> None:
    """Otherwise an Object has the same schema and values."""
    rows: dict[str, Shape] = {"b": TEXT, "a": TEXT}
    record, plain = Record(rows, required=("a",), closed=True), Object(rows, required=("a",), closed=True)
    assert list(json_schema(record)) == ["type", "properties", "required", "additionalProperties"]
    assert json_schema(record) == json_schema(plain)
    assert check(record, {"a": 1}) == {"a": "1"}


def test_the_order_of_members() -> None:
    """A Map goes through its members in JavaScript's order: what looks like an index comes first.

    Indices below 2**32 - 1 are in ascending order, and all other members are as they came, in JSON too.
    """
    rows: dict[str, Shape] = {"map": Map(Integer()), "members": Members(Integer())}
    for name, first in (("map", "/body/map/7"), ("members", "/body/members/b")):
        with pytest.raises(ShapeError) as caught:
            check(Object(rows), {name: {"a": 1, "b": "x", "7": "y"}})
        assert caught.value.problem == (first, "must be integer")
    assert check(Members(TEXT), {"b": 1, "a": "c"}) == {"b": "1", "a": "c"}
    names = ["b", "4294967295", "4294967294", "a", "-1", "1", "00", "0"]
    assert keys_in_order(names) == ["0", "1", "4294967294", "b", "4294967295", "a", "-1", "00"]
    assert json.loads(to_json(dict.fromkeys(names))) == dict.fromkeys(names)


THING = Object({"a": TEXT, "b": Array(Object({"c": TEXT}, required=("c",), closed=True))}, closed=True)


def test_a_missing_property() -> None:
    """The path of the object comes first, then the path of the missing property."""
    item = details(THING, {"b": [{"c": "x"}, {}]})[0]
    assert item["message"] == "The `/body/b/1/c` property is required. It was not present on the data you sent."
    assert next(iter(item.items())) == ("path", "/body/b/1/c")


def test_a_property_too_many() -> None:
    """Path first, and the object as well as the property; a slash in the name stays, and an empty name is its object's path."""
    item = details(THING, {"b": [{"c": "x", "a/b": 1}]})[0]
    assert item["message"] == (
        "The `/body/b/0` object of the request body does not allow additional properties. "
        "Your request included the `/body/b/0/a/b` property."
    )
    assert next(iter(item.items())) == ("path", "/body/b/0/a/b")
    assert details(THING, {"": 1})[0]["path"] == "/body"
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


def test_what_came_before_is_shown_as_coerced() -> None:
    """An object is shown with its coerced members, as far as they were checked before."""
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


def test_what_json_does_not_know_has_a_text_too() -> None:
    """A value of YAML, such as a date, or a key that is not a text, is shown and does not raise."""
    assert to_json({1: {2}}) == '{"1":"{2}"}'


@pytest.mark.parametrize(("value", "text"), [(None, "null"), (True, "true"), (1.0, "1"), ("a", "a"), ({}, "[object Object]")])
def test_the_string_of_a_value(value: Any, text: str) -> None:
    """The text equals JavaScript's String(value)."""
    assert as_string(value) == text


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
