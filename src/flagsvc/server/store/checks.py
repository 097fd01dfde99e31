"""Pure checks of names, variants, parameters and links that go beyond the shape of a body (import validation 6.3).

The single operations and the import share them. Each function returns what to store, or raises the
CallerError that the API answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from flagsvc.engine.values.jsnumber import parse as parse_number
from flagsvc.http.client_query import MAX_NAME_LENGTH, RELATIVE_PATHS, URL_FRIENDLY
from flagsvc.http.shapes.text import to_json
from flagsvc.server.store.errors import CallerError, Detail, bad_data
from flagsvc.server.store.urls import BadUrl, normalized

Json: TypeAlias = dict[str, Any]

INVALID = (
    "Request validation failed: your request body or params contain invalid data. Refer to the `details` list for more information."
)
"""The message of every 400 for a body or a parameter that does not have its shape (import validation 3)."""
FLEXIBLE_ROLLOUT = "flexibleRollout"
TOTAL_WEIGHT = 1000
"""The sum of the weights of all variants of a feature's environment or a strategy."""
MAX_LINKS = 10
"""The most links of a feature."""
LONGEST_LINK_TEXT = 10_000
"""The most characters of the URL and of the title of a link. Ours: the real server has no bound."""
MAX_SEGMENTS = 5
"""The most segments of a strategy."""
VARIABLE, FIXED = "variable", "fix"
NO_VARIABLE_VARIANT = 'There must be at least one "variable" variant'
COLLATION = {letter: place for place, letter in enumerate("_-!.'()*~0123456789abcdefghijklmnopqrstuvwxyz")}
"""The letters of URL-friendly names in the order of JavaScript's localeCompare; upper case counts after lower at the end."""
VARIANT_FIELDS = ("name", "weight", "weightType", "payload", "stickiness", "overrides")
PAYLOAD_FIELDS = ("type", "value")


def make_detail(message: str, value: object = None) -> Detail:
    """Return a detail of an error, with the value that was sent. As on the real server, a falsy value is left out."""
    falsy = value is None or value is False or value == "" or (isinstance(value, int | float) and value == 0)
    return {"message": f"{message}." if falsy else f"{message}. You provided {to_json(value)}."}


def invalid(*details: Detail) -> CallerError:
    """Return the 400 with these details."""
    return CallerError("BadDataError", INVALID, details)


def raise_problems(*problems: Detail | None) -> None:
    """Raise CallerError (400) with the problems that are not None, if there are any."""
    found = [problem for problem in problems if problem is not None]
    if found:
        raise invalid(*found)


def name_problem(name: str, label: str = "name") -> Detail | None:
    """Return what is wrong with the name of a feature or a variant; None for a valid one (import validation 6.3, step 1)."""
    if not name:
        return make_detail(f'"{label}" is not allowed to be empty')
    if not URL_FRIENDLY.match(name) or name in RELATIVE_PATHS:
        return make_detail(f'"{label}" must be URL friendly', name)
    if len(name) > MAX_NAME_LENGTH:
        return make_detail(f'"{label}" length must be less than or equal to {MAX_NAME_LENGTH} characters long', name)
    return None


def check_name(name: str) -> None:
    """Raise CallerError (400) for a name that no feature may have."""
    raise_problems(name_problem(name))


def fill_parameters(name: str | None, parameters: Mapping[str, Any] | None, feature: str, stickiness: str) -> Json:
    """Return the parameters of a strategy; a flexibleRollout gets defaults for missing ones (6.3, 7).

    `stickiness` is the project's default; `feature` is the default groupId.
    """
    given = dict(parameters or {})
    if name != FLEXIBLE_ROLLOUT:
        return given
    filled = {"rollout": "100", "groupId": feature} | {key: each for key, each in given.items() if each is not None}
    return filled | {"stickiness": given.get("stickiness") or stickiness}


def default_strategy(feature: str) -> Json:
    """Return the strategy that a feature gets when it is switched on without an active strategy (6.3, 8)."""
    parameters = {"rollout": "100", "stickiness": "default", "groupId": feature}
    return {"name": FLEXIBLE_ROLLOUT, "constraints": [], "disabled": False, "parameters": parameters}


def check_variants(variants: object) -> list[Json]:
    """Return variants, each with the defaults that evaluation uses.

    Raises CallerError (400) for the first invalid or repeated one.
    """
    if not isinstance(variants, list):
        raise invalid(make_detail('"value" must be an array', variants))
    checked: dict[str, Json] = {}
    for index, each in enumerate(variants):
        variant = _check_variant(each, f"[{index}]")
        if variant["name"] in checked:
            raise invalid(make_detail(f'"[{index}]" contains a duplicate value', variant))
        checked[variant["name"]] = variant
    return list(checked.values())


def _check_variant(variant: object, label: str) -> Json:
    if not isinstance(variant, dict):
        raise invalid(make_detail(f'"{label}" must be of type object', variant))
    _check_variant_name(variant, f"{label}.name")
    checked = variant | {"weight": _parse_weight(variant, f"{label}.weight")}
    kind = checked.setdefault("weightType", VARIABLE)
    if kind not in (VARIABLE, FIXED):
        raise invalid(make_detail(f'"{label}.weightType" must be one of [{VARIABLE}, {FIXED}]', kind))
    if "payload" in checked:
        _check_payload(checked["payload"], f"{label}.payload")
    _check_text(checked.setdefault("stickiness", "default"), f"{label}.stickiness")
    _check_overrides(checked.get("overrides", []), f"{label}.overrides")
    _check_known_fields(checked, VARIANT_FIELDS, label)
    return checked


def _check_variant_name(variant: Json, label: str) -> None:
    if "name" not in variant:
        raise invalid(make_detail(f'"{label}" is required'))
    _check_text(variant["name"], label)
    raise_problems(name_problem(variant["name"], label))


def _check_text(value: object, label: str) -> None:
    """Raise CallerError unless the value is a text that is not empty."""
    if not isinstance(value, str):
        raise invalid(make_detail(f'"{label}" must be a string', value))
    if not value:
        raise invalid(make_detail(f'"{label}" is not allowed to be empty'))


def _parse_weight(variant: Json, label: str) -> int:
    """Return the weight of a variant, a whole number from 0 to 1000. A text with such a number is accepted."""
    if "weight" not in variant:
        raise invalid(make_detail(f'"{label}" is required'))
    given = variant["weight"]
    number = parse_number(given) if isinstance(given, str) and given.strip() else given
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
        raise invalid(make_detail(f'"{label}" must be a number', given))
    if number != int(number):
        raise invalid(make_detail("Weight only supports 1 decimal", number))
    if number < 0:
        raise invalid(make_detail(f'"{label}" must be greater than or equal to 0', number))
    if number > TOTAL_WEIGHT:
        raise invalid(make_detail(f'"{label}" must be less than or equal to {TOTAL_WEIGHT}', number))
    return int(number)


def _check_payload(payload: object, label: str) -> None:
    if not isinstance(payload, dict):
        raise invalid(make_detail(f'"{label}" must be of type object', payload))
    for name in PAYLOAD_FIELDS:
        if name not in payload:
            raise invalid(make_detail(f'"{label}.{name}" is required'))
        _check_text(payload[name], f"{label}.{name}")
    if payload["type"] == "json" and not is_json_container(payload["value"]):
        raise invalid(make_detail("'value' must be a valid json string when 'type' is json", payload["value"]))
    _check_known_fields(payload, PAYLOAD_FIELDS, label)


def _check_overrides(overrides: object, label: str) -> None:
    if not isinstance(overrides, list):
        raise invalid(make_detail(f'"{label}" must be an array', overrides))
    for index, each in enumerate(overrides):
        if not isinstance(each, dict):
            raise invalid(make_detail(f'"{label}[{index}]" must be of type object', each))
        if "contextName" not in each:
            raise invalid(make_detail(f'"{label}[{index}].contextName" is required'))
        _check_text(each["contextName"], f"{label}[{index}].contextName")
        values = each.get("values", [])
        if not isinstance(values, list):
            raise invalid(make_detail(f'"{label}[{index}].values" must be an array', values))
        for number, value in enumerate(values):
            _check_text(value, f"{label}[{index}].values[{number}]")


def _check_known_fields(values: Json, known: Sequence[str], label: str) -> None:
    extra = next((name for name in values if name not in known), None)
    if extra is not None:
        raise invalid(make_detail(f'"{label}.{extra}" is not allowed', values[extra]))


def is_json_container(text: str) -> bool:
    """Return whether a text is a JSON object or array."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict | list)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are not JSON


def distribute_weights(variants: Sequence[Json]) -> list[Json]:
    """Return variants sorted by name; the variable ones share equally the weight that the fixed ones leave (6.3, 2).

    As on the real server, a variant without a weightType is left out. Raises CallerError (400) if none is variable, or the fixed
    weights exceed the total.
    """
    if not variants:
        return []
    free = [each for each in variants if each.get("weightType") == VARIABLE]
    fixed = [each for each in variants if each.get("weightType") == FIXED]
    if not free:
        raise bad_data(NO_VARIABLE_VARIANT)
    rest = TOTAL_WEIGHT - sum(each["weight"] for each in fixed)
    if rest < 0:
        raise bad_data("The traffic distribution total must equal 100%")
    share, over = divmod(rest, len(free))
    shared = [each | {"weight": share + (index < over)} for index, each in enumerate(free)]
    return sorted([*shared, *fixed], key=lambda each: collation_key(each["name"]))


def collation_key(name: str) -> tuple[list[int], list[bool]]:
    """Return the sort key of a URL-friendly name, in the order of JavaScript's localeCompare."""
    return [COLLATION.get(letter, ord(letter)) for letter in name.lower()], [letter.isupper() for letter in name]


def prepare_variants(variants: object) -> list[Json]:
    """Return variants as they are stored: checked, with their weights, without the defaults. Raises CallerError (400)."""
    checked = check_variants(variants)
    given = variants if isinstance(variants, list) else []
    return distribute_weights([each | {"weight": full["weight"]} for each, full in zip(given, checked, strict=True)])


def prepare_imported_variants(variants: Sequence[Json]) -> list[Json]:
    """Return variants of an environment as they are stored: as sent, with weights. Variants without a weightType are left out.

    Raises CallerError (400).
    """
    check_variants(variants)
    typed = [each for each in variants if "weightType" in each]
    if not typed:
        raise bad_data(NO_VARIABLE_VARIANT)
    return distribute_weights(typed)


def check_segment_count(numbers: Sequence[int | float]) -> None:
    """Raise CallerError (400) for more segments than a strategy may have."""
    if len(numbers) > MAX_SEGMENTS:
        raise bad_data(f"Strategies may not have more than {MAX_SEGMENTS} segments")


class ExternalLink(NamedTuple):
    """A link to store: its feature, its normalized URL, and its title."""

    feature: str
    url: str
    title: str | None


def make_link(feature: str, url: str, title: str | None, before: int) -> ExternalLink:
    """Return a link to store; `before` is how many the feature already has. Raises CallerError (400, 403).

    Ours: the real server takes every scheme, and so offers `javascript:` as a link, and it takes any length.
    """
    for name, text in (("url", url), ("title", title or "")):
        if len(text) > LONGEST_LINK_TEXT:
            raise bad_data(f"The {name} of a link must not have more than {LONGEST_LINK_TEXT} characters")
    if before >= MAX_LINKS:
        raise CallerError("OperationDeniedError", f"Too many links ({MAX_LINKS}) exist for this feature")
    try:
        address = normalized(url)
    except BadUrl:
        raise bad_data(f"Invalid URL: {url}") from None
    if not is_page_address(address):
        raise bad_data(f"Invalid URL: {url} is no address of a web page")
    return ExternalLink(feature, address, title or None)


def is_page_address(address: str) -> bool:
    """Return whether a normalized address is that of a web page. Only such an address is a link."""
    return address.startswith(("http://", "https://"))
