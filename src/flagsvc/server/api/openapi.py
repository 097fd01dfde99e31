"""Builds the OpenAPI document of the flag server. Its components are the named shapes (specification: Batch import data set)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flagsvc.http import openapi
from flagsvc.http.openapi import ApiDescription, Json, Operation, content_of, failure
from flagsvc.http.route import Documented
from flagsvc.http.shapes import Array, Named, Object, Record, String, components, json_schema
from flagsvc.server.api.route import Auth, Route

FRONTEND_TOKEN = "frontendToken"  # noqa: S105  (the name of a scheme, not a secret)
SCHEMES = {Auth.ADMIN: ("adminToken",), Auth.CLIENT: ("backendToken",), Auth.NONE: ()}
PROGRAM = ApiDescription(
    title="flagsvc server",
    description="Holds feature flags. HEAD works wherever GET does; OPTIONS tells the methods of a path.",
    header="Authorization",
    schemes={
        "adminToken": "A user's personal token, or an admin token.",
        "backendToken": "A token of proxies and server-side SDKs, bound to an environment and to projects.",
        FRONTEND_TOKEN: "A token of SDKs in browsers and apps, bound to an environment and to projects.",
    },
)
PARAMETER = re.compile(r":(\w+)")
ERROR = Named(
    "error",
    Record(
        {
            "id": String(description="Of this one answer."),
            "name": String(description="What kind of error it is."),
            "message": String(),
            "details": Array(Object({"message": String(), "path": String()})),
        },
        required=("message",),
    ),
)


def is_bare(route: Route) -> bool:
    """Return whether a 400 of the route may have no body, as for the reports of clients."""
    return route.auth is Auth.CLIENT and route.method == "POST"


MISSHAPEN = "The body or a parameter does not match its schema, or contains an invalid value."
ANSWERS: tuple[Documented[Route], ...] = (
    Documented(400, MISSHAPEN, lambda route: not is_bare(route)),
    Documented(400, MISSHAPEN, is_bare, ""),
    Documented(401, "There is no token, or it is not known.", lambda route: route.auth is not Auth.NONE),
    Documented(403, "The token is of the wrong type, or a permission is missing.", lambda route: route.auth is not Auth.NONE),
    Documented(404, "Something that the path or the body names does not exist.", lambda _: True),
    Documented(409, "It conflicts with existing data.", lambda route: route.method != "GET"),
    Documented(413, "The body is too large.", lambda _: True),
    Documented(415, "The body is not JSON, or in a charset or content coding that is not read.", lambda _: True),
    Documented(503, "The server is in maintenance mode, or its database is away.", lambda _: True),
)
"""The error responses, each with a function that tells which routes can send it."""


def document(routes: Iterable[Route], place: str, more: Sequence[Operation] = ()) -> Json:
    """Return the OpenAPI document of the routes and of `more` operations; `place` is the prefix of every path, or empty."""
    rows = [route for route in routes if route.listed]
    templates: dict[str, str] = {}
    operations = []
    for route in rows:
        path = templates.setdefault(PARAMETER.sub(":", route.path), route.path)  # one name for each parameter
        operations.append(operation(route, path))
    shapes = [shape for route in rows for shape in (route.body, route.result) if shape is not None]
    shapes += [shape for each in more for shape in each.shapes]
    schemas = {ERROR.name: json_schema(ERROR.inner)} | components(shapes)
    return openapi.document(PROGRAM, [*operations, *more], schemas, place)


def operation(route: Route, path: str) -> Operation:
    """Return the operation of a route; `path` is the route's path with the names of its parameters."""
    failures = {str(each.status): failure(each, ERROR) for each in ANSWERS if each.applies(route)}
    return Operation(
        row=route,
        path=PARAMETER.sub(r"{\1}", path),
        name=route.operation,
        description=description(route),
        schemes=SCHEMES[route.auth],
        answers={str(route.status): {"description": "Done."} | content_of(route)} | failures,
        path_parameters=tuple(PARAMETER.findall(path)),
    )


def description(route: Route) -> str:
    """Return the description of a route, with the permission that it requires."""
    needed = (route.permission,) if isinstance(route.permission, str) else route.permission
    names = " or ".join(f"`{name}`" for name in needed if name)
    return " ".join(text for text in (route.description, f"Needs {names}." if names else "") if text)
