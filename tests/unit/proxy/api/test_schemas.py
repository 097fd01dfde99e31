"""The shapes of bodies: the answers of the proxy fit them."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.engine.context import FIELDS
from flagsvc.http.messages import HttpError
from flagsvc.http.shapes import ShapeError, check, components
from flagsvc.proxy.api.body import TEXT_FIELDS, LookupBody, read_lookup
from flagsvc.proxy.api.openapi import SHAPES
from flagsvc.proxy.api.schemas import CONTEXT_FIELDS, CONTEXT_PARAMETERS, LOOKUP
from support.same_inputs import examples
from support.serving import attempt

SCHEMAS = components(SHAPES)


def validator(name: str) -> Any:
    return jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": {"schemas": SCHEMAS}})


def test_every_reader_of_contexts_knows_the_same_fields() -> None:
    """The shape, the parameters of the query string, the reader of bodies and the engine."""
    texts = set(CONTEXT_FIELDS)
    assert set(TEXT_FIELDS) == texts
    assert {parameter.name for parameter in CONTEXT_PARAMETERS} == {*texts, "currentTime", "properties"} == set(FIELDS)


def test_every_shape_is_listed_and_is_a_schema() -> None:
    """Only listed shapes are in the OpenAPI document, each once. An error has nothing beside its message and the wrong places."""
    assert sorted(shape.name for shape in SHAPES) == list(SCHEMAS)
    validators = {name: validator(name) for name in SCHEMAS}
    assert validators["Error"].is_valid({"error": "x", "validation": [{"instancePath": "/a", "message": "b"}]})
    assert not validators["Error"].is_valid({"error": "x", "trace": "y"})


def looked_up(value: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the toggles and the context that the shape makes of a body; raises ShapeError."""
    found: Any = check(LOOKUP, copy.deepcopy(value))
    context = found.get("context", {})
    properties = {name: text for name, text in context.items() if name not in FIELDS and text is not None}
    fields = {name: context[name] for name in FIELDS if name != "properties" and context.get(name) not in (None, "")}
    return found.get("toggles", []), {**fields, "properties": {**properties, **context.get("properties", {})}}


SENT = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**60),
    st.floats(allow_nan=False),
    st.sampled_from(["", "a", "2026-01-01", "1e3", [], ["a", None, [1]], {}, {"a": 1}]),
)
CONTEXTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys((*CONTEXT_FIELDS, "currentTime", "region"), SENT),
        "properties": st.dictionaries(st.sampled_from(["region", "a/b"]), SENT, max_size=2),
    },
)


@settings(max_examples=examples(300), deadline=None)
@given(st.fixed_dictionaries({}, optional={"toggles": st.lists(SENT, max_size=2), "context": CONTEXTS}))
def test_the_fast_reader_of_contexts_and_the_shape_say_the_same(value: dict[str, Any]) -> None:
    """They take the same bodies, and make the same context of one."""
    found = attempt(read_lookup, value, 5)
    if isinstance(found, HttpError):
        with pytest.raises(ShapeError):
            looked_up(value)
        return
    assert isinstance(found, LookupBody)
    assert (found.toggles, found.context.as_dict()) == looked_up(value)


GOOD: dict[str, Any] = {
    "toggles": ["a"],
    "context": {"userId": "u", "region": ["eu", 1], "currentTime": 0, "properties": {"plan": 7}},
}


@pytest.mark.parametrize("held", [[], {}, ["a"]], ids=repr)
@pytest.mark.parametrize(
    "way",
    [
        *[(), ("toggles",), ("toggles", 0), ("context",), ("context", "properties"), ("context", "properties", "a/b")],
        *[("context", name) for name in (*CONTEXT_FIELDS, "currentTime", "region")],
    ],
    ids=repr,
)
def test_they_tell_the_same_problem(way: tuple[str | int, ...], held: object) -> None:
    """For a single error, both readers name the same place and the same rule."""
    value = copy.deepcopy({"body": GOOD})
    *steps, last = ("body", *way)
    holder: Any = value
    for step in steps:
        holder = holder[step]
    holder[last] = held
    expected = attempt(read_lookup, copy.deepcopy(value["body"]), 5)
    if isinstance(expected, LookupBody):
        check(LOOKUP, value["body"])
        return
    assert isinstance(expected, HttpError)
    with pytest.raises(ShapeError) as caught:
        check(LOOKUP, value["body"])
    assert [caught.value.problem] == expected.problems
