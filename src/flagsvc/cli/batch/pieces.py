"""Splits a data set into pieces: each below the server's body limit, parents before their children. Pure."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flagsvc.cli.batch.client import encode_json
from flagsvc.core.errors import FlagsvcError

Json = dict[str, Any]
BODY_LIMIT = 512_000
"""A flag server's default limit of a body, in bytes; a piece has fewer."""
MAX_FLAGS = 100
"""The most flags of one piece: a server writes it in one transaction, and answers only at the end."""
FLAG_FIELDS = {
    "features": "name", "featureStrategies": "featureName", "featureEnvironments": "name", "featureTags": "featureName",
    "dependencies": "feature", "links": "feature",
}  # fmt: skip
"""Lists of a data set → the field that says of which flag an item is."""


class TooLargeError(FlagsvcError):
    """A single flag exceeds the server's limit."""


class Piece(NamedTuple):
    """The names of some flags, and the request that imports them."""

    names: list[str]
    request: Json


@dataclass
class RequestParts:
    """A request, split into the items of each flag."""

    request: Json
    flags: dict[str, Json] = field(default_factory=dict)
    segments: dict[Any, Json] = field(default_factory=dict)
    ascii_only: bool = False
    """Whether the request escapes all characters that are not ASCII."""

    def request_for(self, names: list[str]) -> Json:
        """Return the request that imports some flags, with their segments."""
        data: Json = {key: [item for name in names for item in self.flags[name][key]] for key in FLAG_FIELDS}
        used = {id_ for name in names for id_ in self.uses(name)}
        segments = [item for id_, item in self.segments.items() if id_ in used]
        return self.request | {"data": data | {"segments": segments, "contextFields": [], "tagTypes": []}}

    def uses(self, name: str) -> set[Any]:
        """Return the ids of the segments that a flag uses."""
        return {id_ for item in self.flags[name]["featureStrategies"] for id_ in item.get("segments") or ()}

    def size(self, items: Iterable[Json]) -> int:
        """Return the bytes of items of a list, each with its comma."""
        return sum(len(encode_ascii(each) if self.ascii_only else encode_json(each)) + 1 for each in items)


def split_request(request: Json, names: Iterable[str], limit: int = BODY_LIMIT) -> Iterator[Piece]:
    """Yield requests that import these flags of a data set, each of fewer than `limit` bytes.

    Each flag is in one of them, with its entries and its segments. A parent is in the piece of its child or in an earlier one.
    Context fields and tag types are left out, because the server already has them. Raises TooLargeError.
    """
    parts = split_by_flag(request)
    some: list[str] = []
    used: set[Any] = set()
    size = empty = len(encode_json(parts.request_for([])))
    for name in parents_first(request["data"], names):
        own = parts.size(item for items in parts.flags[name].values() for item in items)
        shared = parts.size(parts.segments[id_] for id_ in parts.uses(name) - used)
        if some and (size + own + shared >= limit or len(some) == MAX_FLAGS):
            yield Piece(some, parts.request_for(some))
            some, used, size = [], set(), empty
            shared = parts.size(parts.segments[id_] for id_ in parts.uses(name))
        size += own + shared
        if size >= limit:
            raise TooLargeError(f"the request for flag `{name}` has {size} bytes; the server takes fewer than {limit}")
        some.append(name)
        used |= parts.uses(name)
    if some:
        yield Piece(some, parts.request_for(some))


def without_flags(piece: Piece, names: Container[str]) -> Piece:
    """Return a piece without some of its flags."""
    left = [name for name in piece.names if name not in names]
    return piece if left == piece.names else Piece(left, split_by_flag(piece.request).request_for(left))


def split_by_flag(request: Json) -> RequestParts:
    """Return a request split by flag."""
    data = request["data"]
    names = [item["name"] for item in data["features"]]
    parts = RequestParts(request, {name: {key: [] for key in FLAG_FIELDS} for name in names})
    for key, flag in FLAG_FIELDS.items():
        for item in data.get(key) or ():
            if item.get(flag) in parts.flags:
                parts.flags[item[flag]][key].append(item)
    parts.segments = {item["id"]: item for item in data.get("segments") or ()}
    parts.ascii_only = encode_json(data).isascii()
    return parts


def encode_ascii(value: object) -> str:
    """Return compact JSON, with escapes for all characters that are not ASCII."""
    return json.dumps(value, separators=(",", ":"))


def parents_first(data: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yield names of flags, parents before their children, otherwise in their order."""
    asked = {
        item["feature"]: [parent["feature"] for parent in item["dependencies"]]
        for item in data.get("dependencies") or ()
    }
    left = dict.fromkeys(names)
    for name in list(left):
        stack = {name: iter(asked.get(name, ()))}
        while stack:
            parents = next(reversed(stack.values()))
            waiting = next((parent for parent in parents if parent in left and parent not in stack), None)
            if waiting is not None:
                stack[waiting] = iter(asked.get(waiting, ()))
                continue
            done, _ = stack.popitem()
            if done in left:
                del left[done]
                yield done
