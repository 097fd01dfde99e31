"""A data set in pieces that a server takes: each below the limit of a body, a parent before its children. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flagsvc.cli.batch.client import encoded
from flagsvc.core.errors import FlagsvcError

Json = dict[str, Any]
BODY_LIMIT = 512_000
"""Bytes of a body that a flag server takes where its limit was not raised; a piece has fewer."""
MOST_FLAGS = 100
"""Flags of one piece: a server writes it in one transaction, and answers when all of it is done."""
OF_A_FLAG = {
    "features": "name", "featureStrategies": "featureName", "featureEnvironments": "name", "featureTags": "featureName",
    "dependencies": "feature", "links": "feature",
}  # fmt: skip
"""Lists of a data set → the field that says of which flag an item is."""


class TooLargeError(FlagsvcError):
    """A flag alone is larger than what a server takes."""


class Piece(NamedTuple):
    """The names of some flags, and the request that imports them."""

    names: list[str]
    request: Json


@dataclass
class RequestParts:
    """A request, and by flag what of its data set is that flag's own."""

    request: Json
    flags: dict[str, Json] = field(default_factory=dict)
    segments: dict[Any, Json] = field(default_factory=dict)
    ascii_only: bool = False
    """Whether the server gets escapes for all that is not ASCII."""

    def of(self, names: list[str]) -> Json:
        """Return the request that imports some flags, with the segments that they use."""
        data: Json = {key: [item for name in names for item in self.flags[name][key]] for key in OF_A_FLAG}
        used = {id_ for name in names for id_ in self.uses(name)}
        segments = [item for id_, item in self.segments.items() if id_ in used]
        return self.request | {"data": data | {"segments": segments, "contextFields": [], "tagTypes": []}}

    def uses(self, name: str) -> set[Any]:
        """Return the numbers of the segments that a flag uses."""
        return {id_ for item in self.flags[name]["featureStrategies"] for id_ in item.get("segments") or ()}

    def size(self, items: Iterable[Json]) -> int:
        """Return the bytes of items of a list, each with its comma."""
        return sum(len(ascii_of(each) if self.ascii_only else encoded(each)) + 1 for each in items)


def pieces(request: Json, names: Iterable[str], limit: int = BODY_LIMIT) -> Iterator[Piece]:
    """Give requests that import these flags of a request's data set, each of fewer than `limit` bytes.

    Each flag is in one of them, with all that is its own and the segments that it uses; a parent is in the piece of its child or
    in one before. Context fields and tag types are left out: they are there already. Raises TooLargeError.
    """
    parts = parts_of(request)
    some: list[str] = []
    used: set[Any] = set()
    size = empty = len(encoded(parts.of([])))
    for name in parents_first(request["data"], names):
        own = parts.size(item for items in parts.flags[name].values() for item in items)
        shared = parts.size(parts.segments[id_] for id_ in parts.uses(name) - used)
        if some and (size + own + shared >= limit or len(some) == MOST_FLAGS):
            yield Piece(some, parts.of(some))
            some, used, size = [], set(), empty
            shared = parts.size(parts.segments[id_] for id_ in parts.uses(name))
        size += own + shared
        if size >= limit:
            raise TooLargeError(f"the request for flag `{name}` has {size} bytes; the server takes fewer than {limit}")
        some.append(name)
        used |= parts.uses(name)
    if some:
        yield Piece(some, parts.of(some))


def parts_of(request: Json) -> RequestParts:
    """Return a request in its parts."""
    data = request["data"]
    names = [item["name"] for item in data["features"]]
    parts = RequestParts(request, {name: {key: [] for key in OF_A_FLAG} for name in names})
    for key, flag in OF_A_FLAG.items():
        for item in data.get(key) or ():
            if item.get(flag) in parts.flags:
                parts.flags[item[flag]][key].append(item)
    parts.segments = {item["id"]: item for item in data.get("segments") or ()}
    parts.ascii_only = encoded(data).isascii()
    return parts


def ascii_of(value: object) -> str:
    """Return JSON without blanks, with an escape for all that is not ASCII."""
    return json.dumps(value, separators=(",", ":"))


def parents_first(data: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Give names of flags, a parent before its children; otherwise in their order."""
    asked = {
        item["feature"]: [parent["feature"] for parent in item["dependencies"]]
        for item in data.get("dependencies") or ()
    }
    left = dict.fromkeys(names)
    for name in list(left):
        stack = [name]
        while stack:
            waiting = [parent for parent in asked.get(stack[-1], ()) if parent in left and parent not in stack]
            if waiting:
                stack.append(waiting[0])
                continue
            done = stack.pop()
            if done in left:
                del left[done]
                yield done
