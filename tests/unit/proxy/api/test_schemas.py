"""The shapes of bodies: what the proxy answers fits them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.http.shapes import components
from flagsvc.proxy.api.schemas import NAMED

FEATURES: list[dict[str, Any]] = [
    {"name": "plain", "enabled": True, "strategies": []},
    {
        "name": "varied",
        "enabled": True,
        "strategies": [],
        "variants": [{"name": "a", "weight": 1, "payload": {"type": "json", "value": "{}"}}],
    },
    {"name": "off", "enabled": False, "impressionData": True},
]


SCHEMAS = components(NAMED)


def validator(name: str) -> Any:
    """Return a validator of one shape."""
    return jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": {"schemas": SCHEMAS}})


@pytest.mark.parametrize("state", [False, True])
def test_what_the_engine_says_fits(state: bool) -> None:
    """Lists and named look-ups, also with the feature's state inside the variant."""
    document = {"version": 2, "features": FEATURES}
    snapshot = compile_document(document, CompileOptions(variant_feature_state=state)).snapshot
    toggles = validator("Toggles")
    for body in (
        snapshot.enabled(Context()),
        snapshot.all(Context()),
        snapshot.named(Context(), ["varied", "unknown"])[0],
    ):
        toggles.validate(json.loads(body))
        assert json.loads(body)["toggles"]


def test_every_shape_with_a_name_is_listed_once() -> None:
    """The OpenAPI document tells of the listed ones alone."""
    assert sorted(shape.name for shape in NAMED) == list(SCHEMAS)


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_every_shape_is_a_schema(name: str) -> None:
    """A validator can be made of it."""
    assert validator(name) is not None


def test_errors_are_closed() -> None:
    """An error has nothing beside its message and the places that are wrong."""
    error = validator("Error")
    assert error.is_valid({"error": "x", "validation": [{"instancePath": "/a", "message": "b"}]})
    assert not error.is_valid({"error": "x", "trace": "y"})
