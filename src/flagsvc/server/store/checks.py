"""What must hold of names, variants, parameters and links beyond the shape of a body: pure checks (import validation 6.3).

The one-call operations and the import share them. Every function gives what is to be stored, or raises the Refusal of the wire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from flagsvc.engine.values.jsnumber import parse as parse_number
from flagsvc.http.shapes.text import to_json
from flagsvc.server.store.refusals import Detail, Refusal, bad_data
from flagsvc.server.store.urls import BadUrl, normalized

Json: TypeAlias = dict[str, Any]

INVALID = (
    "Request validation failed: your request body or params contain invalid data. "
    "Refer to the `details` list for more information."
)
"""The message of every 400 for a body or a parameter that does not have its shape (import validation 3)."""
URL_FRIENDLY = re.compile(r"[A-Za-z0-9_.!~*'()-]*\Z")
RELATIVE = (".", "..")
"""Names that a path would take for something else."""
LONGEST_NAME = 100
FLEXIBLE_ROLLOUT = "flexibleRollout"
WHOLE = 1000
"""The weights of the variants of one place add up to this."""
MOST_LINKS = 10
"""How many links a feature may have."""
MOST_SEGMENTS = 5
"""How many segments a strategy may use."""
VARIABLE, FIXED = "variable", "fix"
NONE_VARIABLE = 'There must be at least one "variable" variant'
COLLATION = {letter: place for place, letter in enumerate("_-!.'()*~0123456789abcdefghijklmnopqrstuvwxyz")}
"""The letters of URL-friendly names in the order of JavaScript's localeCompare; upper case counts after lower at the end."""
VARIANT_FIELDS = ("name", "weight", "weightType", "payload", "stickiness", "overrides")
PAYLOAD_FIELDS = ("type", "value")


def told(message: str, value: object = None) -> Detail:
    """Return a detail that shows the value it is about, as the wire does: one that counts as false is not shown."""
    falsy = value is None or value is False or value == "" or (isinstance(value, int | float) and value == 0)
    return {"message": f"{message}." if falsy else f"{message}. You provided {to_json(value)}."}


def invalid(*details: Detail) -> Refusal:
    """Return the 400 whose details say what is wrong."""
    return Refusal("BadDataError", INVALID, details)


def name_problem(name: str, label: str = "name") -> Detail | None:
    """Return what is wrong with the name of a feature or a variant; None for a good one (import validation 6.3, step 1)."""
    if not name:
        return told(f'"{label}" is not allowed to be empty')
    if not URL_FRIENDLY.match(name) or name in RELATIVE:
        return told(f'"{label}" must be URL friendly', name)
    if len(name) > LONGEST_NAME:
        return told(f'"{label}" length must be less than or equal to {LONGEST_NAME} characters long', name)
    return None


def check_name(name: str) -> None:
    """Raise Refusal (400) for a name that no feature may have."""
    problem = name_problem(name)
    if problem is not None:
        raise invalid(problem)


def with_defaults(name: str | None, parameters: Mapping[str, Any] | None, feature: str, stickiness: str) -> Json:
    """Return the parameters of a strategy of that name, those missing of a flexibleRollout filled in (6.3, 7).

    `stickiness` is the project's default one, `feature` becomes the groupId.
    """
    given = dict(parameters or {})
    if name != FLEXIBLE_ROLLOUT:
        return given
    filled = {"rollout": "100", "groupId": feature} | {key: each for key, each in given.items() if each is not None}
    return filled | {"stickiness": given.get("stickiness") or stickiness}


def default_strategy(feature: str) -> Json:
    """Return the strategy that a feature gets when it is switched on without an active one (6.3, 8)."""
    parameters = {"rollout": "100", "stickiness": "default", "groupId": feature}
    return {"name": FLEXIBLE_ROLLOUT, "constraints": [], "disabled": False, "parameters": parameters}


def check_variants(variants: object) -> list[Json]:
    """Return variants, each with the defaults that evaluation gives it.

    Raises Refusal (400) for the first that cannot be, or comes twice.
    """
    if not isinstance(variants, list):
        raise invalid(told('"value" must be an array', variants))
    checked: dict[str, Json] = {}
    for index, each in enumerate(variants):
        variant = _variant(each, f"[{index}]")
        if variant["name"] in checked:
            raise invalid(told(f'"[{index}]" contains a duplicate value', variant))
        checked[variant["name"]] = variant
    return list(checked.values())


def _variant(variant: object, label: str) -> Json:
    """Return a variant with its defaults."""
    if not isinstance(variant, dict):
        raise invalid(told(f'"{label}" must be of type object', variant))
    _named(variant, f"{label}.name")
    checked = variant | {"weight": _weight(variant, f"{label}.weight")}
    kind = checked.setdefault("weightType", VARIABLE)
    if kind not in (VARIABLE, FIXED):
        raise invalid(told(f'"{label}.weightType" must be one of [{VARIABLE}, {FIXED}]', kind))
    if "payload" in checked:
        _check_payload(checked["payload"], f"{label}.payload")
    _text(checked.setdefault("stickiness", "default"), f"{label}.stickiness")
    _check_overrides(checked.get("overrides", []), f"{label}.overrides")
    _only(checked, VARIANT_FIELDS, label)
    return checked


def _named(variant: Json, label: str) -> None:
    if "name" not in variant:
        raise invalid(told(f'"{label}" is required'))
    _text(variant["name"], label)
    problem = name_problem(variant["name"], label)
    if problem is not None:
        raise invalid(problem)


def _text(value: object, label: str) -> None:
    """Raise Refusal for what is no text, or an empty one."""
    if not isinstance(value, str):
        raise invalid(told(f'"{label}" must be a string', value))
    if not value:
        raise invalid(told(f'"{label}" is not allowed to be empty'))


def _weight(variant: Json, label: str) -> int:
    """Return the weight of a variant, a whole number from 0 to 1000; text that is such a number counts."""
    if "weight" not in variant:
        raise invalid(told(f'"{label}" is required'))
    given = variant["weight"]
    number = parse_number(given) if isinstance(given, str) and given.strip() else given
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
        raise invalid(told(f'"{label}" must be a number', given))
    if number != int(number):
        raise invalid(told("Weight only supports 1 decimal", number))
    if number < 0:
        raise invalid(told(f'"{label}" must be greater than or equal to 0', number))
    if number > WHOLE:
        raise invalid(told(f'"{label}" must be less than or equal to {WHOLE}', number))
    return int(number)


def _check_payload(payload: object, label: str) -> None:
    if not isinstance(payload, dict):
        raise invalid(told(f'"{label}" must be of type object', payload))
    for name in PAYLOAD_FIELDS:
        if name not in payload:
            raise invalid(told(f'"{label}.{name}" is required'))
        _text(payload[name], f"{label}.{name}")
    if payload["type"] == "json" and not is_json_container(payload["value"]):
        raise invalid(told("'value' must be a valid json string when 'type' is json", payload["value"]))
    _only(payload, PAYLOAD_FIELDS, label)


def _check_overrides(overrides: object, label: str) -> None:
    if not isinstance(overrides, list):
        raise invalid(told(f'"{label}" must be an array', overrides))
    for index, each in enumerate(overrides):
        if not isinstance(each, dict):
            raise invalid(told(f'"{label}[{index}]" must be of type object', each))
        if "contextName" not in each:
            raise invalid(told(f'"{label}[{index}].contextName" is required'))
        _text(each["contextName"], f"{label}[{index}].contextName")
        for number, value in enumerate(each.get("values", [])):
            _text(value, f"{label}[{index}].values[{number}]")


def _only(held: Json, known: Sequence[str], label: str) -> None:
    """Raise Refusal for a member that nobody knows."""
    extra = next((name for name in held if name not in known), None)
    if extra is not None:
        raise invalid(told(f'"{label}.{extra}" is not allowed', held[extra]))


def is_json_container(text: str) -> bool:
    """Return whether a text is a JSON object or array."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict | list)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and its like are no JSON


def weighed(variants: Sequence[Json]) -> list[Json]:
    """Return variants by name, the variable ones sharing equally what the fixed ones leave of the whole (6.3, 2).

    One that says neither is left out, as on the real server. Raises Refusal (400) where none is variable, or the fixed ones take
    more than there is.
    """
    if not variants:
        return []
    free = [each for each in variants if each.get("weightType") == VARIABLE]
    fixed = [each for each in variants if each.get("weightType") == FIXED]
    if not free:
        raise bad_data(NONE_VARIABLE)
    rest = WHOLE - sum(each["weight"] for each in fixed)
    if rest < 0:
        raise bad_data("The traffic distribution total must equal 100%")
    share, over = divmod(rest, len(free))
    shared = [each | {"weight": share + (index < over)} for index, each in enumerate(free)]
    return sorted([*shared, *fixed], key=lambda each: collated(each["name"]))


def collated(name: str) -> tuple[list[int], list[bool]]:
    """Return the key that sorts URL-friendly names as JavaScript's localeCompare does."""
    return [COLLATION.get(letter, ord(letter)) for letter in name.lower()], [letter.isupper() for letter in name]


def prepared_variants(variants: object) -> list[Json]:
    """Return variants as they are stored: checked and weighed, without the defaults. Raises Refusal (400)."""
    checked = check_variants(variants)
    given = variants if isinstance(variants, list) else []
    return weighed([each | {"weight": full["weight"]} for each, full in zip(given, checked, strict=True)])


def imported_variants(variants: Sequence[Json]) -> list[Json]:
    """Return variants of an environment as they are stored: weighed, without those that have no weightType, else as sent.

    Raises Refusal (400).
    """
    check_variants(variants)
    typed = [each for each in variants if "weightType" in each]
    if not typed:
        raise bad_data(NONE_VARIABLE)
    return weighed(typed)


def check_segment_count(numbers: Sequence[int | float]) -> None:
    """Raise Refusal (400) for more segments than a strategy may have."""
    if len(numbers) > MOST_SEGMENTS:
        raise bad_data(f"Strategies may not have more than {MOST_SEGMENTS} segments")


class ExternalLink(NamedTuple):
    """A link that is to be: its feature, its address as it is kept, and its title."""

    feature: str
    url: str
    title: str | None


def kept(feature: str, url: str, title: str | None, before: int) -> ExternalLink:
    """Return a link as it is kept; `before` is how many the feature has by then. Raises Refusal (400, 403)."""
    if before >= MOST_LINKS:
        raise Refusal("OperationDeniedError", f"Too many links ({MOST_LINKS}) exist for this feature")
    try:
        return ExternalLink(feature, normalized(url), title or None)
    except BadUrl:
        raise bad_data(f"Invalid URL: {url}") from None
