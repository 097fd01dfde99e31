"""The OpenAPI document, made of the route rows (specification: GET /docs/openapi.json)."""

from __future__ import annotations

from typing import Any, TypeAlias

from flagsvc.core.version import VERSION
from flagsvc.proxy.api.routes import ROUTES, Auth, Documented, RouteRow, answers_of
from flagsvc.proxy.api.schemas import CONTEXT_FIELDS, EXAMPLES, SCHEMAS, TEXT, ref
from flagsvc.proxy.api.settings import ServiceSettings

Json: TypeAlias = dict[str, Any]

CLIENT_KEY = "clientKey"
SERVER_TOKEN = "serverToken"  # noqa: S105  (the name of a scheme, not a secret)
SCHEMES = {
    Auth.NONE: (),
    Auth.CLIENT: (CLIENT_KEY,),
    Auth.SERVER: (SERVER_TOKEN,),
    Auth.EITHER: (CLIENT_KEY, SERVER_TOKEN),
}
ABOUT = {CLIENT_KEY: "One of the client keys.", SERVER_TOKEN: "One of the server-side tokens, in the same header."}
CACHE = {"Cache-Control": "How long the answer may be kept.", "ETag": "Equal where the answer is."}
HEADERS = {
    200: {"Vary": "What the answer depends on.", **CACHE},
    304: {"Vary": "What the answer depends on.", **CACHE},
    429: {"Retry-After": "Seconds after which to ask again.", "Cache-Control": "Never kept."},
    503: {"Retry-After": "Seconds after which to ask again.", "Cache-Control": "Never kept."},
}


def document(settings: ServiceSettings, root: str) -> Json:
    """Return the OpenAPI 3.1 document of the routes that are on; `root` is where the application is mounted."""
    paths: dict[str, Json] = {}
    for row in ROUTES:
        if row.listed and row.on(settings):
            paths.setdefault(row.place(settings.base_path), {})[row.method.lower()] = operation(row)
    content: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "flagsvc proxy",
            "version": VERSION,
            "description": about(settings),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS, "securitySchemes": schemes(settings)},
    }
    if root:
        content["servers"] = [{"url": root}]
    return content


def about(settings: ServiceSettings) -> str:
    """Return what the service does, and the answers that belong to no operation."""
    return (
        "Evaluates feature flags for client-side applications. HEAD works wherever GET does. OPTIONS on any path is a CORS "
        f"preflight, answered with {settings.cors_options_success_status}. Any other path is answered with 404, any other "
        "method of a path with 405, and `/proxy/all` with 501 while it is switched off."
    )


def schemes(settings: ServiceSettings) -> Json:
    """Return how callers authenticate: both kinds of key come in the same header."""
    header = {"type": "apiKey", "in": "header", "name": settings.client_keys_header_name}
    return {name: {**header, "description": text} for name, text in ABOUT.items()}


def operation(row: RouteRow) -> Json:
    """Return what one method of one route takes and gives."""
    content: Json = {
        "operationId": identifier(row),
        "summary": row.summary,
        "tags": [row.tag],
        "security": [{name: []} for name in SCHEMES[row.auth]],
        "responses": {"200": success(row)} | {str(each.status): failure(each) for each in answers_of(row)},
    }
    if row.description:
        content["description"] = row.description
    if row.query:
        content["parameters"] = parameters()
    if row.body:
        body = {"application/json": {"schema": ref(row.body), "example": EXAMPLES[row.body]}}
        content["requestBody"] = {"required": row.body_needed, "content": body}
    return content


def identifier(row: RouteRow) -> str:
    """Return a name for an operation that stays the same: `get_proxy_all`."""
    words = row.path.replace("-", "/").replace(".", "/").strip("/") or row.handler
    return "_".join([row.method.lower(), *words.split("/")])


def success(row: RouteRow) -> Json:
    """Return the description of a 200."""
    content = {row.media: {"schema": ref(row.schema) if row.schema else TEXT}}
    if row.as_json:
        content["application/json"] = {"schema": ref(row.as_json)}
    return {"description": "OK", "headers": headers(200), "content": content}


def failure(answer: Documented) -> Json:
    """Return the description of any other answer."""
    content: Json = {"description": answer.description}
    if answer.media:
        content["content"] = {answer.media: {"schema": ref(answer.schema) if answer.schema else TEXT}}
    found = headers(answer.status)
    return content | ({"headers": found} if found else {})


def headers(status: int) -> Json:
    """Return the headers that are worth a word at a status."""
    found = HEADERS.get(status, {})
    return {name: {"description": text, "schema": TEXT} for name, text in found.items() if name != "Cache-Control"}


def parameters() -> list[Json]:
    """Return the parameters that make a context."""
    fields = [
        {"name": name, "in": "query", "description": text, "schema": TEXT} for name, text in CONTEXT_FIELDS.items()
    ]
    time = {"name": "currentTime", "in": "query", "description": "A date as JavaScript reads it.", "schema": TEXT}
    properties = {
        "name": "properties",
        "in": "query",
        "description": "Further fields: `properties[region]=eu`. A parameter of any other name is a property too.",
        "style": "deepObject",
        "explode": True,
        "schema": {
            "type": "object",
            "propertyNames": {"pattern": r"^[^\[\]]+$"},
            "additionalProperties": TEXT,
            "examples": [{}],
        },
    }
    return [*fields, time, properties]
