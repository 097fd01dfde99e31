"""What SDKs report, checked (behaviour: POST /proxy/client/metrics; POST /proxy/client/register)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from flagsvc.http.messages import below, invalid
from flagsvc.proxy.api.body import MUST_BE_ARRAY, MUST_BE_OBJECT, MUST_BE_TEXT, number, text

MAX_COUNT = 1_000_000_000
"""A larger count of one toggle in one report is absurd."""
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d(:?\d\d)?)?")
FRACTION = re.compile(r"\.\d+")
MUST_BE_DATE = 'must match format "date-time"'
MUST_BE_NUMBER = "must be number"
MUST_BE_COUNT = f"must be an integer from 0 to {MAX_COUNT}"

Check = Callable[[str, str, object], object]
"""Takes a JSON pointer, a name below it and a value; raises Refused (400)."""


class ReportedUsage(NamedTuple):
    """What one SDK counted of one toggle."""

    name: str
    yes: int
    no: int
    variants: dict[str, int]


def is_text(place: str, name: str, value: object) -> None:
    """Raise Refused unless the value is a scalar."""
    text(place, name, value)


def is_date(place: str, name: str, value: object) -> None:
    """Raise Refused unless the value is a date and time as RFC 3339 has it; the zone may be missing."""
    if not isinstance(value, str) or not DATE_TIME.fullmatch(value):
        raise invalid(place, name, MUST_BE_DATE)
    try:
        datetime.fromisoformat(FRACTION.sub("", value).upper())
    except ValueError:
        raise invalid(place, name, MUST_BE_DATE) from None


def is_number(place: str, name: str, value: object) -> None:
    """Raise Refused unless the value is a number, or null, or a text of digits."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return
    if not isinstance(value, str) or not value.isdecimal():
        raise invalid(place, name, MUST_BE_NUMBER)


def is_start(place: str, name: str, value: object) -> None:
    """Raise Refused unless the value is a number of epoch milliseconds or a date and time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        is_date(place, name, value)


def are_texts(place: str, name: str, value: object) -> None:
    """Raise Refused unless the value is a list of scalars."""
    if not isinstance(value, list):
        raise invalid(place, name, MUST_BE_ARRAY)
    for index, each in enumerate(value):
        text(f"{place}/{name}", str(index), each)


def is_object(place: str, name: str, value: object) -> None:
    """Raise Refused unless the value is an object."""
    if not isinstance(value, dict):
        raise invalid(place, name, MUST_BE_OBJECT)


METRICS: dict[str, Check] = {"appName": is_text, "instanceId": is_text, "bucket": is_object}
BUCKET: dict[str, Check] = {"start": is_date, "stop": is_date, "toggles": is_object}
REGISTRATION: dict[str, Check] = {
    "appName": is_text,
    "interval": is_number,
    "started": is_start,
    "strategies": are_texts,
}


def checked(place: str, value: object, required: dict[str, Check]) -> dict[str, object]:
    """Return an object that has every required field, each as its check wants it; raises Refused (400)."""
    if not isinstance(value, dict):
        raise invalid(place, None, MUST_BE_OBJECT)
    for name in required:
        if name not in value:
            raise invalid(place, None, f"must have required property '{name}'")
    for name, check in required.items():
        check(place, name, value[name])
    return value


def read_registration(value: object) -> None:
    """Check the body of a registration; raises Refused (400)."""
    fields = checked("/body", value, REGISTRATION)
    if isinstance(fields.get("instanceId"), list | dict):
        raise invalid("/body", "instanceId", MUST_BE_TEXT)


def read_metrics(value: object) -> list[ReportedUsage]:
    """Return what a metrics post counts, toggle by toggle; raises Refused (400) before anything of it is counted."""
    bucket = checked("/body/bucket", checked("/body", value, METRICS)["bucket"], BUCKET)
    toggles = bucket["toggles"]
    if not isinstance(toggles, dict):
        raise invalid("/body/bucket", "toggles", MUST_BE_OBJECT)
    return [read_usage(name, counts) for name, counts in toggles.items()]


def read_usage(name: str, counts: object) -> ReportedUsage:
    """Return what was counted of one toggle; raises Refused (400)."""
    if not isinstance(counts, dict):
        raise invalid("/body/bucket/toggles", name, MUST_BE_OBJECT)
    place = below("/body/bucket/toggles", name)
    variants = counts.get("variants", {})
    if not isinstance(variants, dict):
        raise invalid(place, "variants", MUST_BE_OBJECT)
    return ReportedUsage(
        name,
        read_count(place, "yes", counts.get("yes")),
        read_count(place, "no", counts.get("no")),
        {variant: read_count(f"{place}/variants", variant, count) for variant, count in variants.items()},
    )


def read_count(place: str, name: str, value: object) -> int:
    """Return a count: a whole number in bounds, also as a text of digits; null is 0; raises Refused (400)."""
    if value is None:
        return 0
    if isinstance(value, str) and value.isdecimal() and len(value) <= len(str(MAX_COUNT)):
        value = int(value)
    amount = number(value)
    if isinstance(value, str | list | dict) or not 0 <= amount <= MAX_COUNT or amount != int(amount):
        raise invalid(place, name, MUST_BE_COUNT)
    return int(amount)
