"""What must hold of tags, tag types and context fields that an import brings: pure checks (import validation 6.3, steps 3 to 5)."""

from __future__ import annotations

from collections.abc import Iterator

from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.checks import RELATIVE, URL_FRIENDLY, told
from flagsvc.server.store.refusals import Detail

NAME = (1, 100)
TAG = (2, 50)
"""Least and most characters of a name, and of a tag or its type."""
LONGEST_DESCRIPTION = 250


def problems(label: str, value: str, least: int, most: int, *, friendly: bool = False) -> Iterator[Detail]:
    """Give what is wrong with a text: nothing or one thing."""
    if not value:
        yield told(f'"{label}" is not allowed to be empty')
    elif friendly and (not URL_FRIENDLY.match(value) or value in RELATIVE):
        yield told(f'"{label}" must be URL friendly', value)
    elif len(value) < least:
        yield told(f'"{label}" length must be at least {least} characters long', value)
    elif len(value) > most:
        yield told(f'"{label}" length must be less than or equal to {most} characters long', value)


def tag_problems(kind: str, value: str) -> Iterator[Detail]:
    """Give what is wrong with a tag of that type and value."""
    yield from problems("value", value, *TAG)
    yield from problems("type", kind, *TAG, friendly=True)


def context_field_problems(field: Json) -> Iterator[Detail]:
    """Give what is wrong with a new context field."""
    yield from problems("name", field["name"], *NAME, friendly=True)
    if field.get("description"):
        yield from problems("description", field["description"], 0, LONGEST_DESCRIPTION)
    values = field.get("legalValues", [])
    for index, each in enumerate(values):
        yield from problems(f"legalValues[{index}].value", each["value"], *NAME)
    seen: set[str] = set()
    for index, each in enumerate(values):
        if each["value"] in seen:
            yield told(f'"legalValues[{index}]" contains a duplicate value', each)
        seen.add(each["value"])
