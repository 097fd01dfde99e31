"""The OpenAPI document, made of the route rows; its components are the named shapes (specification: Batch import data set)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from flagsvc.core.version import VERSION
from flagsvc.http.shapes import components, json_schema
from flagsvc.server.api.route import Auth, Parameter, Route

Json: TypeAlias = dict[str, Any]

SCHEMES = {Auth.ADMIN: "adminToken", Auth.CLIENT: "backendToken"}
ABOUT = {
    "adminToken": "A user's personal token, or an admin token.",
    "backendToken": "A token of proxies and server-side SDKs, bound to an environment and to projects.",
}
PARAMETER = re.compile(r":(\w+)")
TEXT: Json = {"type": "string"}
ERROR: Json = {
    "type": "object",
    "properties": {
        "id": {**TEXT, "description": "Of this one answer."},
        "name": {**TEXT, "description": "What kind of error it is."},
        "message": TEXT,
        "details": {"type": "array", "items": {"type": "object", "properties": {"message": TEXT, "path": TEXT}}},
    },
    "required": ["message"],
}
WHY: dict[int, str] = {
    400: "The body or a parameter does not have its shape, or holds what cannot be.",
    401: "There is no token, or nobody knows it.",
    403: "The token is of the wrong type, or a permission is missing.",
    404: "Something that the path or the body names does not exist.",
    409: "It contradicts what is there.",
    413: "The body is too large.",
    415: "The body is not JSON, or in a charset or content coding that is not read.",
    503: "The server is in maintenance mode, or its database is away.",
}
ALWAYS = (400, 404, 413, 415, 503)


def document(routes: Iterable[Route], place: str) -> Json:
    """Return the OpenAPI 3.1 document of the routes; `place` is what stands before every path, empty for nothing."""
    rows = [route for route in routes if route.listed]
    paths: dict[str, Json] = {}
    templates: dict[str, str] = {}
    for route in rows:
        path = templates.setdefault(PARAMETER.sub(":", route.path), route.path)  # one place, one name of each parameter
        paths.setdefault(PARAMETER.sub(r"{\1}", path), {})[route.method.lower()] = operation(route, path)
    shapes = [shape for route in rows for shape in (route.body, route.result) if shape is not None]
    content: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "flagsvc server",
            "version": VERSION,
            "description": "Holds feature flags. HEAD works wherever GET does; OPTIONS tells the methods of a path.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"error": ERROR} | components(shapes),
            "securitySchemes": {name: scheme(text) for name, text in ABOUT.items()},
        },
    }
    return content | ({"servers": [{"url": place}]} if place else {})


def scheme(text: str) -> Json:
    """Return how a token comes: both kinds in the same header."""
    return {"type": "apiKey", "in": "header", "name": "Authorization", "description": text}


def operation(route: Route, path: str) -> Json:
    """Return what one method of one route takes and gives; `path` names its parameters."""
    content: Json = {
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [route.tag],
        "security": [{SCHEMES[route.auth]: []}] if route.auth in SCHEMES else [],
        "responses": {str(route.status): success(route)}
        | {str(status): failure(route, status) for status in failures(route)},
    }
    if about := description(route):
        content["description"] = about
    if named := parameters(route, path):
        content["parameters"] = named
    if route.body is not None:
        body = {"application/json": {"schema": json_schema(route.body)}}
        content["requestBody"] = {"required": True, "content": body}
    return content


def description(route: Route) -> str:
    """Return what there is to say about a route beyond its summary: the permission it needs."""
    needed = (route.permission,) if isinstance(route.permission, str) else route.permission
    names = " or ".join(f"`{name}`" for name in needed if name)
    return " ".join(text for text in (route.description, f"Needs {names}." if names else "") if text)


def parameters(route: Route, path: str) -> list[Json]:
    """Return the parameters of the path and of the query string."""
    found = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in PARAMETER.findall(path)]
    return found + [parameter(row) for row in route.query]


def parameter(row: Parameter) -> Json:
    """Return one parameter of the query string."""
    one: Json = {"type": row.kind}
    schema = {"type": "array", "items": one} if row.repeated else one
    return {"name": row.name, "in": "query", "description": row.description, "schema": schema}


def success(route: Route) -> Json:
    """Return the description of the answer when all is well."""
    media = route.media.partition(";")[0]
    content: Json = {}
    if route.result is not None:
        content[media] = {"schema": json_schema(route.result)}
    elif media != "application/json":
        content[media] = {"schema": TEXT}
    if route.as_json is not None:
        content["application/json"] = {"schema": json_schema(route.as_json)}
    return {"description": "Done."} | ({"content": content} if content else {})


def failures(route: Route) -> list[int]:
    """Return the statuses of the errors that a route may answer with."""
    extra = () if route.auth is Auth.NONE else (401, 403)
    changes = (409,) if route.method != "GET" else ()
    return sorted({*ALWAYS, *extra, *changes})


def failure(route: Route, status: int) -> Json:
    """Return the description of an error; a report that clients send may be refused without a body."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/error"}}}
    bare = status == 400 and route.auth is Auth.CLIENT and route.method == "POST"
    return {"description": WHY[status]} | ({} if bare else {"content": content})
