"""Short ways to evaluate a document in a test."""

from __future__ import annotations

import json
from typing import Any

from flagsvc.engine.classes.store import ClassStore
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.snapshot import Snapshot


def feature(name: str = "flag", *strategies: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "enabled": True, "strategies": list(strategies), **more}


def strategy(name: str = "default", *constraints: object, **more: Any) -> dict[str, Any]:
    """Return a strategy with these constraints; `parameters` and the rest by keyword."""
    return {"name": name, "parameters": {}, "constraints": list(constraints), **more}


def constraint(operator: str, field: str = "region", **more: Any) -> dict[str, Any]:
    return {"contextName": field, "operator": operator, **more}


def rollout(share: object, **more: Any) -> dict[str, Any]:
    """Return a flexible rollout; its parameters by keyword."""
    return strategy("flexibleRollout", parameters={"rollout": share, **more})


def snapshot(*features: object, segments: list[object] | None = None, **options: Any) -> Snapshot:
    document = {"version": 2, "features": list(features), "segments": segments or []}
    return compile_document(document, CompileOptions(**options)).snapshot


def classes_of(made: Snapshot) -> ClassStore:
    """Return the classes of a snapshot, which must have them."""
    assert isinstance(made.lists, ClassStore)
    return made.lists


def toggles(body: bytes) -> dict[str, dict[str, Any]]:
    return {toggle["name"]: toggle for toggle in json.loads(body)["toggles"]}


def is_on(feature: dict[str, Any], context: Context | None = None, **options: Any) -> bool:
    """Return whether a feature is on for a context, the same in every form of the answer."""
    made = snapshot(feature, **options)
    asked = context or Context()
    name = feature["name"]
    listed = name in toggles(made.enabled(asked))
    assert toggles(made.all(asked))[name]["enabled"] is listed
    assert made.named(asked, [name])[1] == [listed]
    assert made.decide(asked, name)[0] is listed
    return listed


def holds(constraint: object, context: Context | None = None) -> bool:
    """Return whether a constraint lets a context through."""
    return is_on(feature("flag", strategy("default", constraint)), context)


def region(value: str | None) -> Context:
    """Return a context whose property `region` has a value, or that has none."""
    return Context(properties={} if value is None else {"region": value})
