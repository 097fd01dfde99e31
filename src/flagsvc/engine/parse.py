"""Parses a decoded JSON document into the model (behaviour: Evaluation; Documents that are not accepted).

A part that the reference fails on is on for no context. A feature without a name, or that is no object, raises a DocumentError
with its position. Null counts as absent.
"""

from __future__ import annotations

import json
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
from flagsvc.engine.reading import (
    SCALAR,
    Oddities,
    as_object,
    read_flag,
    read_key,
    read_list,
    read_object,
    read_own_text,
    wrong,
)
from flagsvc.engine.values.jsvalue import MISSING, is_scalar, is_true, text_of
from flagsvc.engine.values.text import trim
from flagsvc.engine.weights import Weights, is_plain

MAX_REPEATED: Final = 4 * 1024 * 1024
"""The most characters that the name of a feature may take in all outcomes together: the answer of each variant repeats it."""


NO_VARIANT: Final = "\0"
"""Stands for what is no name of a variant: no server stores a name with a NUL."""


def is_included(raw: object, project: str | None, name_prefix: str | None) -> bool:
    """Return whether the feature passes the filters. A feature without a project passes every project filter."""
    if not isinstance(raw, dict):
        return True
    name = raw.get("name")
    if name_prefix and is_scalar(name) and not text_of(name).startswith(name_prefix):
        return False
    return not project or raw.get("project") in (None, project)


def parse_segment(raw: object, path: str, odd: Oddities | None = None) -> SegmentSpec:
    odd = odd or Oddities()
    segment = as_object(raw, path)
    listed = segment.get("constraints")
    constraints = parse_constraints(listed, path, odd)
    if isinstance(listed, (int, float)):
        constraints = [None]  # for the reference, a strategy with zero or false has none, and a segment fails
    name = segment.get("name")
    return SegmentSpec(identity(segment.get("id"), f"{path}.id"), name if isinstance(name, str) else "", constraints)


def parse_feature(raw: object, path: str, odd: Oddities | None = None) -> FeatureSpec:
    """Return one feature. Without a list of strategies it is never on; with an empty list it is on when enabled."""
    odd = odd or Oddities()
    feature = as_object(raw, path)
    name = name_of(feature)
    if not name:
        raise DocumentError(f"{path}.name", wrong("a text", feature.get("name")))
    if name != feature.get("name"):
        odd.add(f"{path}.name", "a text", feature.get("name"))
    parsed = FeatureSpec(
        name,
        read_flag(feature, "enabled", path, odd) and isinstance(feature.get("strategies"), list),
        read_flag(feature, "impressionData", path, odd),
        [
            parse_strategy(item, f"{path}.strategies[{at}]", odd)
            for at, item in enumerate(read_list(feature, "strategies", path, odd))
        ],
        parse_variants(feature, path, odd),
        parse_dependencies(feature, path, odd),
    )
    check_repeats(parsed, path)
    return parsed


def name_of(feature: dict[str, object]) -> str:
    """Return the name of a feature as a text; empty if it has none."""
    name = feature.get("name")
    return text_of(name) if is_scalar(name) else ""


def check_repeats(feature: FeatureSpec, path: str) -> None:
    """Raise DocumentError if the outcomes of a feature would repeat its name too often."""
    count = len(feature.variants) + sum([len(strategy.variants) for strategy in feature.strategies])
    if count * len(feature.name) > MAX_REPEATED:
        raise DocumentError(f"{path}.name", f"must be shorter: {count} variants repeat its {len(feature.name)} characters")


def parse_strategy(raw: object, path: str, odd: Oddities | None = None) -> StrategySpec:
    """Return one strategy. A value that is no object has no name, so the strategy is on for no context."""
    odd = odd or Oddities()
    strategy = read_object(raw, path, odd)
    place = f"{path}.parameters"
    given = read_object(strategy.get("parameters"), place, odd, nullable=True)
    parsed = StrategySpec(
        path,
        read_own_text(strategy, "name", path, odd),
        parse_parameters(given, place, odd),
        parse_constraints(strategy.get("constraints"), path, odd),
        parse_segments(strategy.get("segments"), path, odd),
        parse_variants(strategy, path, odd),
    )
    parsed.group = text_of(given.get("groupId", MISSING))
    if "stickiness" in given:
        parsed.stickiness = text_of(given["stickiness"])
    return parsed


def parse_parameters(given: dict[str, object], path: str, odd: Oddities) -> dict[str, str]:
    """Return the parameters of a strategy as texts, without parameters that built-in strategies read as absent."""
    parameters: dict[str, str] = {}
    for name, value in given.items():
        if value is None:
            continue
        if not is_scalar(value):
            odd.add(f"{path}.{name}", SCALAR, value)
        if name in NUMBERS:
            parameters[name] = str(int(value)) if isinstance(value, bool) else text_of(value)
        elif name not in TEXTS:
            parameters[name] = json_text(value)
        elif isinstance(value, str) or is_true(value):
            parameters[name] = text_of(value)
    return parameters


def parse_segments(raw: object, path: str, odd: Oddities) -> list[str]:
    """Return the segment identities of the strategy at a path. A wrong value becomes the empty identity, which no segment has."""
    if raw is None:
        return []
    if not isinstance(raw, list):
        odd.add(f"{path}.segments", "a list", raw)
        return [""]
    found: list[str] = []
    for at, item in enumerate(raw):
        if isinstance(item, bool) or not isinstance(item, (int, float, str)):
            odd.add(f"{path}.segments[{at}]", "a number or a text", item)
        found.append("" if isinstance(item, (list, dict)) else json_of(item))
    return found


def parse_constraints(raw: object, path: str, odd: Oddities) -> list[ConstraintSpec | None]:
    """Return the constraints of the strategy or segment at a path. What is none is None, which never holds."""
    if isinstance(raw, list):
        return [parse_item(item, f"{path}.constraints[{at}]", odd) for at, item in enumerate(raw)]
    if raw is not None:
        odd.add(f"{path}.constraints", "a list", raw)
    return [None] if is_true(raw) else []


def parse_item(raw: object, path: str, odd: Oddities) -> ConstraintSpec | None:
    """Return an item of a list of constraints; None for what is none."""
    if isinstance(raw, dict):
        return parse_constraint(raw, path, odd)
    if raw is not None:
        odd.add(path, "an object", raw)
    return None


def parse_constraint(raw: object, path: str, odd: Oddities | None = None) -> ConstraintSpec:
    """Return one constraint, without empty values and with the others trimmed. `value` is as in the document."""
    odd = odd or Oddities()
    constraint = as_object(raw, path)
    value = constraint.get("value", MISSING)
    if isinstance(value, (list, dict)):
        odd.add(f"{path}.value", SCALAR, value)
    unreadable = constraint.get("values") is not None and not isinstance(constraint["values"], list)
    values: list[str] = []
    for at, item in enumerate(read_list(constraint, "values", path, odd)):
        if isinstance(item, (list, dict)):
            unreadable = True
            odd.add(f"{path}.values[{at}]", SCALAR, item)
        elif is_true(item):
            values.append(trim(text_of(item)))
    return ConstraintSpec(
        path,
        read_key(constraint, "contextName", path, odd),
        read_own_text(constraint, "operator", path, odd),
        tuple(values),
        value,
        is_true(constraint.get("inverted")),
        is_true(constraint.get("caseInsensitive")),
        unreadable,
    )


def parse_variants(owner: dict[str, object], path: str, odd: Oddities | None = None) -> list[VariantSpec]:
    """Return the variants of a feature or a strategy."""
    odd = odd or Oddities()
    found: list[VariantSpec] = []
    for at, item in enumerate(read_list(owner, "variants", path, odd)):
        add_variant(found, item, f"{path}.variants[{at}]", odd)
    set_weights(found)
    return found


def add_variant(found: list[VariantSpec], raw: object, path: str, odd: Oddities) -> None:
    """Add a variant. Null and another false value are none."""
    if is_true(raw):
        found.append(parse_variant(raw, path, odd))
    else:
        odd.add(path, "an object", raw)


def set_weights(variants: list[VariantSpec]) -> None:
    """Set whole weights, of which a draw has its buckets."""
    if all([is_plain(variant.stated) for variant in variants]):
        return
    weights = Weights([variant.stated for variant in variants]).rounded()
    for variant, weight in zip(variants, weights, strict=True):
        variant.weight = weight


def parse_variant(raw: object, path: str, odd: Oddities) -> VariantSpec:
    """Return one variant. The value of its payload is a text (specification: Variant)."""
    variant = read_object(raw, path, odd)
    name = variant.get("name")
    if not isinstance(name, str):
        odd.add(f"{path}.name", "a text", name)
    overrides: list[OverrideSpec] = []
    for at, item in enumerate(read_list(variant, "overrides", path, odd)):
        overrides += parse_override(item, f"{path}.overrides[{at}]", odd)
    stated = variant.get("weight", MISSING)
    weight = 0
    if isinstance(stated, (int, float)) and is_plain(stated):
        weight = int(stated)
    else:
        odd.add(f"{path}.weight", "a whole number", None if stated is MISSING else stated)
    parsed = VariantSpec(
        text_of(name) if is_scalar(name) else "",
        weight,
        read_stickiness(variant, path, odd),
        parse_payload(variant, path, odd),
        overrides,
    )
    parsed.stated = stated
    return parsed


def read_stickiness(variant: dict[str, object], path: str, odd: Oddities) -> str | None:
    """Return the stickiness of a variant: None if it is absent, empty for another false value."""
    raw = variant.get("stickiness")
    if raw is None:
        return None
    return read_key(variant, "stickiness", path, odd) if is_true(raw) else ""


def parse_payload(variant: dict[str, object], path: str, odd: Oddities) -> dict[str, str] | None:
    """Return type and value of a payload as texts. A value that is not a text becomes its JSON."""
    if variant.get("payload") is None:
        return None
    payload = read_object(variant["payload"], f"{path}.payload", odd)
    if not isinstance(variant["payload"], dict):
        return None
    return {key: json_text(payload[key]) for key in ("type", "value") if payload.get(key) is not None}


def parse_override(raw: object, path: str, odd: Oddities) -> list[OverrideSpec]:
    """Return one override, or none without a list of values. Only texts can equal a context field."""
    override = read_object(raw, path, odd)
    values = read_list(override, "values", path, odd)
    if not values:
        return []
    texts = tuple([item for item in values if isinstance(item, str)])
    return [OverrideSpec(read_key(override, "contextName", path, odd), texts)]


def parse_dependencies(feature: dict[str, object], path: str, odd: Oddities) -> list[DependencySpec]:
    """Return the parents of a feature. A text in their place is a parent that is missing."""
    items = read_list(feature, "dependencies", path, odd)
    if isinstance(feature.get("dependencies"), str) and feature["dependencies"]:
        items = [None]
    return [parse_dependency(item, f"{path}.dependencies[{at}]", odd) for at, item in enumerate(items)]


def parse_dependency(raw: object, path: str, odd: Oddities | None = None) -> DependencySpec:
    """Return one parent. It must be on unless `enabled` is false."""
    odd = odd or Oddities()
    dependency = read_object(raw, path, odd)
    text = dependency.get("variants")
    listed = [] if isinstance(text, str) else read_list(dependency, "variants", path, odd)
    names: list[str] = []
    for at, item in enumerate(listed):
        if not is_scalar(item):
            odd.add(f"{path}.variants[{at}]", SCALAR, item)
        names.append(text_of(item) if is_scalar(item) else NO_VARIANT)
    if isinstance(text, str):
        odd.add(f"{path}.variants", "a list", text)
    return DependencySpec(
        read_key(dependency, "feature", path, odd),
        dependency.get("enabled") is not False,
        tuple(names),
        text if isinstance(text, str) else "",
    )


NUMBERS: Final = frozenset(["rollout", "percentage"])
"""The parameters that the built-in strategies read as numbers."""
TEXTS: Final = frozenset(["groupId", "stickiness", "userIds", "IPs", "hostNames"])
"""The parameters that they read as texts: zero and false are absent."""


def identity(raw: object, path: str) -> str:
    """Return a segment's id as JSON text, so that the number 1 and the text "1" differ."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise DocumentError(path, wrong("a number or a text", raw))
    return json_of(raw)


def json_of(raw: object) -> str:
    """Return the JSON of a text, a number, a boolean or null. Equal numbers have equal texts."""
    return json.dumps(raw) if isinstance(raw, str) else text_of(raw)


def json_text(raw: object) -> str:
    """Return a value as text: JSON for an object or a list, else JavaScript's text."""
    return json.dumps(raw, separators=(",", ":")) if isinstance(raw, (dict, list)) else text_of(raw)


def scalar(raw: object, path: str) -> str:
    """Return a text, number or boolean as JavaScript's text. Raises DocumentError for any other value."""
    if is_scalar(raw):
        return text_of(raw)
    raise DocumentError(path, wrong(SCALAR, raw))
