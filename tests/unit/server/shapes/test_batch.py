"""The rows of batch import, and their JSON Schema (import validation 2; 7)."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from flagsvc.engine.operators import OPERATORS
from flagsvc.http.shapes import Array, Integer, Named, Nullable, Object, ShapeError, String, check, components, json_schema
from flagsvc.server.shapes.batch import EXPORT_QUERY, EXPORT_RESULT, IMPORT, VALIDATION
from flagsvc.server.shapes.strategies import UNLISTED
from support import shape_bodies


def refusal(body: Any) -> str:
    """Return the error message for an import's body, or an empty string if the body is valid."""
    try:
        check(IMPORT, body)
    except ShapeError as error:
        return error.details[0]["message"]
    return ""


def with_data(**data: Any) -> dict[str, Any]:
    """Return an import's body with the given lists and the three required ones."""
    lists = {"features": [], "featureStrategies": [], "tagTypes": [], **data}
    return {"project": "default", "environment": "development", "data": lists}


def whole() -> Any:
    """Return a body with every property."""
    body = json.loads(json.dumps(shape_bodies.IMPORT_BODY))
    body["data"]["featureEnvironments"][0]["safeguards"] = [json.loads(json.dumps(shape_bodies.SAFEGUARD))]
    return body


def test_bodies_pass_as_they_are() -> None:
    """Every property of the specification is known, and valid values are not changed. Only three lists are required."""
    assert check(IMPORT, whole()) == whole()
    body = {**with_data(), "project": "", "environment": ""}
    assert check(IMPORT, body) == body


def test_every_object_is_closed_but_few() -> None:
    """An unknown property is refused except in the objects that the specification calls open."""
    opened = set()
    for place, _ in objects(whole(), "/body"):
        body = whole()
        dict(objects(body, "/body"))[place]["unheard"] = "x"
        if not refusal(body):
            opened.add("/".join(part for part in place.split("/") if not part.isdigit()))
    strategies = {place for place in opened if "trategies/" in place and "releasePlans" not in place}
    assert {place.partition("trategies/")[2] for place in strategies} == {"parameters", "variants/payload"}
    assert {place for place in opened if "trategies/" not in place} == {
        "/body/data/features/collaborators",
        "/body/data/features/collaborators/users",
        "/body/data/links/links",
    }


def objects(value: Any, place: str) -> list[tuple[str, Any]]:
    """Return every object in a value with its path."""
    if isinstance(value, dict):
        return [(place, value), *(found for key, item in value.items() for found in objects(item, f"{place}/{key}"))]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in objects(item, f"{place}/{index}")]
    return []


def test_the_operators_are_named_in_order() -> None:
    """The message lists the eighteen operators of version 8.2.0 in its order; IN_CIDR, which it does not know, is taken."""
    constraint = {"contextName": "a", "operator": "X"}
    message = refusal(with_data(featureStrategies=[{"name": "a", "constraints": [constraint]}]))
    told = [name for name in OPERATORS if name not in UNLISTED]
    assert ", ".join(f'"{name}"' for name in told) in message
    assert len(told) == 18 and "IN_CIDR" not in message
    accepted = constraint | {"operator": "IN_CIDR"}
    assert refusal(with_data(featureStrategies=[{"name": "a", "constraints": [accepted]}])) == ""


RULES: list[tuple[dict[str, Any], str]] = [
    ({"features": [{"name": "a", "createdAt": 5}]}, 'createdAt` property must match format "date-time". You sent "5".'),
    ({"features": [{"name": "a", "tags": [{"value": "x", "type": "yy"}]}]}, "must NOT have fewer than 2 characters"),
    ({"features": [{"name": "a", "tags": [{"value": "xx", "type": "y" * 51}]}]}, "NOT have more than 50 characters"),
    ({"tagTypes": [{"name": "a", "color": "red"}]}, 'must match pattern "^#[0-9A-Fa-f]{6}$". You sent "red".'),
    ({"featureEnvironments": [{"name": "a", "enabled": 1, "yes": -1}]}, "must be >= 0. You sent -1."),
    ({"featureStrategies": [{"name": "a", "segments": ["x"]}]}, 'segments/0` property must be number. You sent "x".'),
    ({"featureStrategies": [{"name": "a", "parameters": {"a": []}}]}, "parameters/a` property must be string"),
    ({"contextFields": [{"name": "a", "sortOrder": 1.5}]}, "must be integer. You sent 1.5."),
    (
        {"featureStrategies": [{"name": "a", "constraints": [{"contextName": "a", "operator": "IN", "value": None}]}]},
        'value` property must NOT have fewer than 1 characters. You sent "".',
    ),
]


@pytest.mark.parametrize(("data", "message"), RULES)
def test_rules_of_single_properties(data: dict[str, Any], message: str) -> None:
    """Formats, lengths, patterns, bounds and types are checked."""
    assert message in refusal(with_data(**data))


def test_an_export_asks_for_one_of_three() -> None:
    """Unknown properties are allowed. If no alternative fits, the error lists each alternative and then `anyOf`."""
    assert check(EXPORT_QUERY, {"environment": "", "tag": "", "more": 1})
    with pytest.raises(ShapeError) as caught:
        check(EXPORT_QUERY, {"environment": 1})
    paths = [item["path"] for item in caught.value.details]
    assert paths == ["/body/features", "/body/tag", "/body/project", "/body"]
    assert caught.value.details[3]["message"].endswith('must match a schema in anyOf. You sent {"environment":1}.')


def test_the_components_are_valid_json_schemas() -> None:
    """Every component is a JSON Schema, and they are sorted by name. test_shapes_real_server.py compares the names."""
    found = components((IMPORT, VALIDATION, EXPORT_QUERY))
    assert list(found) == sorted(found)
    for schema in found.values():
        jsonschema_rs.meta.validate(schema)
    assert json_schema(EXPORT_RESULT) == {"$ref": "#/components/schemas/exportResultSchema"}


def test_the_json_schema_takes_what_the_shape_takes() -> None:
    """A body with every property is valid by the schema of the OpenAPI document too, and one with a mistake is not."""
    schema = {**json_schema(IMPORT), "components": {"schemas": components((IMPORT,))}}
    validator = jsonschema_rs.validator_for(schema)
    assert not list(validator.iter_errors(whole()))
    assert list(validator.iter_errors(with_data(features=[{}])))


def test_a_null_that_is_allowed_is_a_type() -> None:
    """A nullable integer has two types. A nullable reference is an `anyOf` of the reference and null."""
    assert json_schema(Nullable(Integer(minimum=0), description="d")) == {
        "type": ["integer", "null"],
        "minimum": 0,
        "description": "d",
    }
    named = Nullable(Named("x", String()))
    assert json_schema(named) == {"anyOf": [{"$ref": "#/components/schemas/x"}, {"type": "null"}]}


def test_two_components_of_one_name_are_refused() -> None:
    """A name stands for one schema."""
    same = Object({"a": Named("x", String()), "b": Named("x", String())})
    assert list(components((same,))) == ["x"]
    with pytest.raises(ValueError, match="two shapes are named `x`"):
        components((Array(Named("x", String())), Named("x", Integer())))
