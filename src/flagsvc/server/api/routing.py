"""Finds the routes of a path, in a tree of path segments (import validation 1).

Letter case, a slash at the end and repeated slashes do not matter. The value of a parameter keeps its letter case and is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from flagsvc.server.api.errors import ApiError, invalid, unknown_path, wrong_method
from flagsvc.server.api.route import Route

SLASHES = re.compile(r"/{2,}")
ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass
class Node:
    """A node of the tree: its children by name (lower case), its child for a parameter, and the routes that end here."""

    named: dict[str, Node] = field(default_factory=dict)
    parameter: Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)


class Match(NamedTuple):
    """A route that matches a path, and the values of its parameters in order, as they were sent."""

    route: Route
    values: tuple[str, ...]


class Router:
    """Finds routes. Raises ValueError if two routes have the same method and path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in segments(route.path):
            if segment.startswith(":"):
                node.parameter = node.parameter or Node()
                node = node.parameter
            else:
                node = node.named.setdefault(segment.lower(), Node())
        if route.method in node.routes:
            raise ValueError(f"two routes for {route.method} {route.path}")
        node.routes[route.method] = route

    def matches(self, path: str) -> dict[str, Match]:
        """Return the routes of a path, by method; empty for an unknown path. Names of segments take precedence over parameters."""
        found: dict[str, Match] = {}
        ends: list[tuple[Node, tuple[str, ...]]] = []
        _walk(self._root, segments(path), 0, (), ends)
        for node, values in ends:
            for method, route in node.routes.items():
                found.setdefault(method, Match(route, values))
        return found


def find_match(found: Mapping[str, Match], method: str) -> Match | None:
    """Return the route of a method, among those of a path; None without one."""
    return found.get("GET" if method == "HEAD" else method)


def refuse_method(found: Mapping[str, Match], method: str, path: str) -> ApiError:
    """Return the error for a method without a route: 404 for an unknown path, 405 with `Allow` for others."""
    return wrong_method(path, method, allowed(found)) if found else unknown_path(path)


def _walk(
    node: Node, rest: list[str], at: int, values: tuple[str, ...], ends: list[tuple[Node, tuple[str, ...]]]
) -> None:
    """Append to `ends` every node that the segments from `at` on lead to. Names of segments come before parameters."""
    if at == len(rest):
        ends.append((node, values))
        return
    named = node.named.get(rest[at].lower())
    if named is not None:
        _walk(named, rest, at + 1, values, ends)
    if node.parameter is not None:
        _walk(node.parameter, rest, at + 1, (*values, rest[at]), ends)


def segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def allowed(found: Iterable[str]) -> str:
    """Return the methods of a path as `Allow` lists them: HEAD follows GET."""
    return ",".join(name for method in found for name in ((method, "HEAD") if method == "GET" else (method,)))


def plain_path(raw: bytes) -> str:
    """Return a path as it was sent, but with one slash in place of repeated slashes."""
    return SLASHES.sub("/", raw.decode("latin-1"))


def parameters(match: Match) -> dict[str, str]:
    """Return the path's parameters by name, decoded. Raises ApiError (400) for an invalid escape."""
    names = [segment[1:] for segment in segments(match.route.path) if segment.startswith(":")]
    return {name: decoded(value) for name, value in zip(names, match.values, strict=True)}


def decoded(value: str) -> str:
    """Return a decoded parameter of a path. Raises ApiError (400; ours: the real server answers 500)."""
    try:
        if ESCAPE.search(value):
            raise ValueError
        return unquote_to_bytes(value.encode("latin-1")).decode()
    except ValueError:
        raise undecodable(value) from None


def undecodable(value: str) -> ApiError:
    """Return the 400 for a path's parameter that cannot be decoded."""
    return invalid([{"message": f"Failed to decode param '{value[:100]}'"}])
