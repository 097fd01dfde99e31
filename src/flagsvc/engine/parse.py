"""Parses a decoded JSON document into the model (behaviour: Evaluation; Documents that are not accepted).

A malformed value raises a DocumentError with its position. It removes only the feature or the segment that contains it. Null counts
as absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from flagsvc.core.errors import DocumentError
from flagsvc.engine.model import (
    ConstraintSpec,
    DependencySpec,
    FeatureSpec,
    OverrideSpec,
    SegmentSpec,
    StrategySpec,
    VariantSpec,
)
from flagsvc.engine.values import jsnumber
from flagsvc.engine.values.text import trim

KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
MAX_WEIGHT: Final = 2**31
MAX_REPEATED: Final = 4 * 1024 * 1024
"""The most characters that the name of a feature may take in all outcomes together: the answer of each variant repeats it."""


def is_included(raw: object, project: str | None, name_prefix: str | None) -> bool:
    """Return whether the feature passes the filters. A feature without a project passes every project filter."""
    if not isinstance(raw, dict):
        return True
    name = raw.get("name")
    if name_prefix and isinstance(name, str) and not name.startswith(name_prefix):
        return False
    return not project or raw.get("project") in (None, project)


def parse_segment(raw: object, path: str) -> SegmentSpec:
    """Return one segment."""
    segment = as_object(raw, path)
    constraints = parse_all(segment, "constraints", path, parse_constraint)
    name = segment.get("name")
    return SegmentSpec(identity(segment.get("id"), f"{path}.id"), name if isinstance(name, str) else "", constraints)


def parse_feature(raw: object, path: str) -> FeatureSpec:
    """Return one feature. Without a list of strategies it is never on; with an empty list it is on when enabled."""
    feature = as_object(raw, path)
    name = feature.get("name")
    if not isinstance(name, str) or not name:
        raise DocumentError(f"{path}.name", wrong("a text", name))
    parsed = FeatureSpec(
        name,
        as_flag(feature, "enabled", path) and feature.get("strategies") is not None,
        as_flag(feature, "impressionData", path),
        [
            parse_strategy(item, f"{path}.strategies[{at}]")
            for at, item in enumerate(as_list(feature, "strategies", path))
        ],
        parse_variants(feature, path),
        [
            parse_dependency(item, f"{path}.dependencies[{at}]")
            for at, item in enumerate(as_list(feature, "dependencies", path))
        ],
    )
    check_repeats(parsed, path)
    return parsed


def check_repeats(feature: FeatureSpec, path: str) -> None:
    """Raise DocumentError if the outcomes of a feature would repeat its name too often."""
    count = len(feature.variants) + sum([len(strategy.variants) for strategy in feature.strategies])
    if count * len(feature.name) > MAX_REPEATED:
        raise DocumentError(
            f"{path}.name", f"must be shorter: {count} variants repeat its {len(feature.name)} characters"
        )


def parse_strategy(raw: object, path: str) -> StrategySpec:
    """Return one strategy."""
    strategy = as_object(raw, path)
    parameters = strategy.get("parameters")
    given = {} if parameters is None else as_object(parameters, f"{path}.parameters")
    return StrategySpec(
        path,
        as_text(strategy, "name", path) or "",
        {name: scalar(value, f"{path}.parameters.{name}") for name, value in given.items() if value is not None},
        parse_all(strategy, "constraints", path, parse_constraint),
        [identity(item, f"{path}.segments[{at}]") for at, item in enumerate(as_list(strategy, "segments", path))],
        parse_variants(strategy, path),
    )


def parse_all(
    owner: dict[str, object], key: str, path: str, parse: Callable[[object, str], ConstraintSpec]
) -> list[ConstraintSpec | None]:
    """Return the parsed items of a list. A null item is None."""
    items = enumerate(as_list(owner, key, path))
    return [None if item is None else parse(item, f"{path}.{key}[{at}]") for at, item in items]


def parse_constraint(raw: object, path: str) -> ConstraintSpec:
    """Return one constraint, without empty values and with the others trimmed. `value` is as in the document."""
    constraint = as_object(raw, path)
    values = [
        scalar(item, f"{path}.values[{at}]") for at, item in enumerate(as_list(constraint, "values", path)) if item
    ]
    value = constraint.get("value", MISSING)
    if value is not None:
        scalar(value, f"{path}.value")
    return ConstraintSpec(
        path,
        as_text(constraint, "contextName", path) or "",
        as_text(constraint, "operator", path) or "",
        tuple([trim(item) for item in values if item]),
        value,
        bool(constraint.get("inverted")),
        bool(constraint.get("caseInsensitive")),
    )


def parse_variants(owner: dict[str, object], path: str) -> list[VariantSpec]:
    """Return the variants of a feature or a strategy."""
    return [parse_variant(item, f"{path}.variants[{at}]") for at, item in enumerate(as_list(owner, "variants", path))]


def parse_variant(raw: object, path: str) -> VariantSpec:
    """Return one variant. The value of its payload is a text (specification: Variant)."""
    variant = as_object(raw, path)
    name = variant.get("name")
    if not isinstance(name, str):
        raise DocumentError(f"{path}.name", wrong("a text", name))
    weight = whole_number(variant.get("weight"))
    if weight is None:
        raise DocumentError(f"{path}.weight", wrong("a whole number", variant.get("weight")))
    overrides = [
        parse_override(item, f"{path}.overrides[{at}]") for at, item in enumerate(as_list(variant, "overrides", path))
    ]
    return VariantSpec(name, weight, as_text(variant, "stickiness", path), parse_payload(variant, path), overrides)


def whole_number(raw: object) -> int | None:
    """Return a weight; None for a value that is not a whole number or is larger than MAX_WEIGHT."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw if -MAX_WEIGHT <= raw <= MAX_WEIGHT else None
    if isinstance(raw, float) and -MAX_WEIGHT <= raw <= MAX_WEIGHT and raw == raw // 1:
        return int(raw)
    return None


def parse_payload(variant: dict[str, object], path: str) -> dict[str, str] | None:
    """Return type and value of a payload as texts. A value that is not a text becomes its JSON."""
    raw = variant.get("payload")
    if raw is None:
        return None
    payload = as_object(raw, f"{path}.payload")
    parts = [(key, payload[key]) for key in ("type", "value") if payload.get(key) is not None]
    return {key: payload_text(part, f"{path}.payload.{key}") for key, part in parts}


def payload_text(part: object, path: str) -> str:
    """Return a part of a payload as text: JSON for an object or a list, else JavaScript's text."""
    return json.dumps(part, separators=(",", ":")) if isinstance(part, (dict, list)) else scalar(part, path)


def parse_override(raw: object, path: str) -> OverrideSpec:
    """Return one override. Only texts can equal a context field."""
    override = as_object(raw, path)
    values = as_list(override, "values", path)
    return OverrideSpec(
        as_text(override, "contextName", path) or "", tuple([item for item in values if isinstance(item, str)])
    )


def parse_dependency(raw: object, path: str) -> DependencySpec:
    """Return one parent. It must be on unless `enabled` is false."""
    dependency = as_object(raw, path)
    variants = tuple(
        [scalar(item, f"{path}.variants[{at}]") for at, item in enumerate(as_list(dependency, "variants", path))]
    )
    return DependencySpec(as_text(dependency, "feature", path) or "", dependency.get("enabled") is not False, variants)


MISSING: Final = "\0missing"
"""Stands for a missing `value` of a constraint. Null is different: JavaScript reads it as zero."""


def identity(raw: object, path: str) -> str:
    """Return a segment's id as JSON text, so that the number 1 and the text "1" differ."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise DocumentError(path, wrong("a number or a text", raw))
    return json.dumps(raw) if isinstance(raw, str) else scalar(raw, path)


def scalar(raw: object, path: str) -> str:
    """Return a text, number or boolean as JavaScript's text."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int):
        return jsnumber.to_text(jsnumber.from_int(raw))
    if isinstance(raw, float):
        return jsnumber.to_text(raw)
    raise DocumentError(path, wrong("a text, a number, true or false", raw))


def as_object(raw: object, path: str) -> dict[str, object]:
    """Return an object. Raises DocumentError for any other value."""
    if isinstance(raw, dict):
        return raw
    raise DocumentError(path, wrong("an object", raw))


def as_list(owner: dict[str, object], key: str, path: str) -> list[object]:
    """Return the list under `key`, empty if it is absent. Raises DocumentError for any other value."""
    raw = owner.get(key)
    if raw is None:
        return []
    if isinstance(raw, list):
        return raw
    raise DocumentError(f"{path}.{key}" if path else key, wrong("a list", raw))


def as_text(owner: dict[str, object], key: str, path: str) -> str | None:
    """Return the text under `key`, None if it is absent. Raises DocumentError for any other value."""
    raw = owner.get(key)
    return None if raw is None else scalar(raw, f"{path}.{key}")


def as_flag(owner: dict[str, object], key: str, path: str) -> bool:
    """Return the boolean under `key`, false if it is absent. Raises DocumentError for any other value."""
    raw = owner.get(key)
    if raw is None or isinstance(raw, bool):
        return bool(raw)
    raise DocumentError(f"{path}.{key}", wrong("true or false", raw))


def wrong(expected: str, raw: object) -> str:
    """Return the error for a value of the wrong kind."""
    return f"must be {expected}, is {'missing' if raw is None else KINDS.get(type(raw), 'something else')}"
