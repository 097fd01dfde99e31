"""Pure checks of the tags, tag types and context fields of an import (import validation 6.3, steps 3 to 5)."""

from __future__ import annotations

from collections.abc import Iterator

from flagsvc.http.client_query import RELATIVE_PATHS, URL_FRIENDLY
from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.checks import make_detail
from flagsvc.server.store.errors import Detail

NAME_LENGTHS = (1, 100)
TAG_LENGTHS = (2, 50)
"""Least and most characters of a name, and of a tag or its type."""
MAX_DESCRIPTION_LENGTH = 250


def length_problems(label: str, value: str, least: int, most: int, *, friendly: bool = False) -> Iterator[Detail]:
    """Yield what is wrong with a text: at most one detail."""
    if not value:
        yield make_detail(f'"{label}" is not allowed to be empty')
    elif friendly and (not URL_FRIENDLY.match(value) or value in RELATIVE_PATHS):
        yield make_detail(f'"{label}" must be URL friendly', value)
    elif len(value) < least:
        yield make_detail(f'"{label}" length must be at least {least} characters long', value)
    elif len(value) > most:
        yield make_detail(f'"{label}" length must be less than or equal to {most} characters long', value)


def tag_problems(kind: str, value: str) -> Iterator[Detail]:
    """Yield what is wrong with a tag of this type and value."""
    yield from length_problems("value", value, *TAG_LENGTHS)
    yield from length_problems("type", kind, *TAG_LENGTHS, friendly=True)


def context_field_problems(field: Json) -> Iterator[Detail]:
    """Yield what is wrong with a new context field."""
    yield from length_problems("name", field["name"], *NAME_LENGTHS, friendly=True)
    if field.get("description"):
        yield from length_problems("description", field["description"], 0, MAX_DESCRIPTION_LENGTH)
    values = field.get("legalValues", [])
    for index, each in enumerate(values):
        yield from length_problems(f"legalValues[{index}].value", each["value"], *NAME_LENGTHS)
    seen: set[str] = set()
    for index, each in enumerate(values):
        if each["value"] in seen:
            yield make_detail(f'"legalValues[{index}]" contains a duplicate value', each)
        seen.add(each["value"])
