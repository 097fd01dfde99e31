"""Finds the place of a schema violation in a file, with the item's name, from `/body/data/features/3/name`. Pure.

A violation has a path and a message (import validation 3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from flagsvc.settings.kinds import printable

LABELS: dict[str, tuple[str, ...]] = {
    "features": ("name",),
    "featureStrategies": ("featureName", "name"),
    "featureEnvironments": ("featureName", "name"),
    "contextFields": ("name",),
    "featureTags": ("featureName",),
    "segments": ("name", "id"),
    "tagTypes": ("name",),
    "dependencies": ("feature",),
    "links": ("feature",),
}
"""List of a data set → the properties that name an item; the first existing one is used."""
PROVIDED, NOT_VALID = 'You provided "', '", which is not valid'
POINTERS = re.compile(r"`(/body[^`]*)`")


class FileViolation(NamedTuple):
    """One violation: the place in the file with the item's name, the message, and the server's path."""

    place: str
    message: str
    path: str


def read_violation(detail: Mapping[str, Any], request: Mapping[str, Any], *, bare: bool) -> FileViolation:
    """Return the violation in a detail of a 400.

    `request` is what was sent. `bare` means that the file is only a data set, so places are relative to it.
    """
    path, message = str(detail.get("path", "")), str(detail.get("message", ""))
    parts = split_pointer(path) if path.startswith("/") else find_value(path, message, request)
    readable = POINTERS.sub(lambda match: f"`{format_path(split_pointer(match[1]), bare) or 'the file'}`", message)
    return FileViolation(
        describe_place(parts, request, bare=bare), printable(readable, 1000).rstrip("."), printable(path, 300)
    )


def split_pointer(pointer: str) -> list[str]:
    """Return the keys and indexes of a server's path, without `body`."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.strip("/").split("/")]
    return parts[1:] if parts[:1] == ["body"] else parts


def describe_place(parts: list[str], request: Mapping[str, Any], *, bare: bool) -> str:
    """Return a path for people, with the name of the item: `data.features[3].type (new-checkout)`."""
    name = item_name(parts, request)
    return (format_path(parts, bare) or "the file") + (f" ({name})" if name else "")


def format_path(parts: list[str], bare: bool) -> str:
    """Return keys and indexes as a path."""
    own = parts[1:] if bare and parts[:1] == ["data"] else parts
    text = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in own)
    return printable(text.removeprefix("."), 300)


def item_name(parts: list[str], request: Mapping[str, Any]) -> str:
    """Return the name of the data set's item in a path; empty without one."""
    if len(parts) < 3 or parts[0] != "data" or parts[1] not in LABELS or not parts[2].isdigit():
        return ""
    try:
        item = request["data"][parts[1]][int(parts[2])]
    except (KeyError, IndexError, TypeError):
        return ""
    names = [item[key] for key in LABELS[parts[1]] if key in item] if isinstance(item, dict) else []
    return printable(str(names[0]), 120) if names and isinstance(names[0], str | int) else ""


def find_value(key: str, message: str, request: Mapping[str, Any]) -> list[str]:
    """Return the path of a value that is not allowed: the server sends only the last part of it."""
    provided, found, _ = message.partition(PROVIDED)[2].rpartition(NOT_VALID)
    try:
        wanted = json.loads(f'"{provided}"') if found else None
    except ValueError:
        wanted = None
    return next((path for path, value in walk(request, []) if path[-1:] == [key] and value == wanted), [key])


def walk(value: object, path: list[str]) -> Iterator[tuple[list[str], object]]:
    """Yield every value with its path, outer ones first, in the order of the file."""
    yield path, value
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in below:
        yield from walk(item, [*path, str(key)])
