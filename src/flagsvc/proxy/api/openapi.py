"""The proxy's OpenAPI document (specification: GET /docs/openapi.json)."""

from __future__ import annotations

import re

from flagsvc.http import openapi
from flagsvc.http.media import JSON
from flagsvc.http.openapi import ApiDescription, Json, Operation, content_of, failure, headers_of
from flagsvc.http.route import Documented
from flagsvc.http.shapes import json_schema
from flagsvc.proxy.api.dialects import DIALECTS, ROUTES
from flagsvc.proxy.api.route import Auth, ProxyRoute
from flagsvc.proxy.api.schemas import OPERATION_SHAPES
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.streams import TICKET

SHAPES = (*(shape for dialect in DIALECTS for shape in dialect.shapes), *OPERATION_SHAPES)
CLIENT_KEY = "clientKey"
SERVER_TOKEN = "serverToken"  # noqa: S105  (the name of a scheme, not a secret)
SCHEMES = {
    Auth.NONE: (),
    Auth.CLIENT: (CLIENT_KEY,),
    Auth.SERVER: (SERVER_TOKEN,),
    Auth.EITHER: (CLIENT_KEY, SERVER_TOKEN),
}
ABOUT = {CLIENT_KEY: "One of the client keys.", SERVER_TOKEN: "One of the server-side tokens, in the same header."}
KEPT = {"Vary": "What the answer depends on.", "ETag": "Equal where the answer is."}
AGAIN = {"Retry-After": "Seconds after which to ask again."}
HEADERS = {200: KEPT, 304: KEPT, 429: AGAIN, 503: AGAIN}
"""The headers that the document describes, by the status of the answer."""

ANSWERS: tuple[Documented[ProxyRoute], ...] = (
    Documented(
        304,
        "The caller has this answer already (If-None-Match)",
        lambda row: row.method == "GET" or (row.wire_format.compares_posts and row.result is not None),
        "",
    ),
    Documented(
        400,
        "The query string or the body does not fit, or the key came twice",
        lambda row: bool(row.query) or row.body is not None or row.auth is not Auth.NONE,
    ),
    Documented(401, "The key is missing or wrong", lambda row: row.auth is not Auth.NONE, "text/plain"),
    Documented(401, "The ticket is unknown or has expired", lambda row: any(each.name == TICKET for each in row.query)),
    Documented(
        403,
        "The key is for other endpoints",
        lambda row: row.wire_format.tells_key_types and row.auth in (Auth.CLIENT, Auth.SERVER),
    ),
    Documented(404, "There is no such toggle", lambda row: bool(row.parameters)),
    Documented(404, "A caller with a key is an SDK with a wrong URL", lambda row: row.handler == "welcome"),
    Documented(413, "The body is too large", lambda row: row.body is not None),
    Documented(414, "The query string is too long", lambda _: True),
    Documented(415, "The media type, charset or content coding is not read", lambda row: row.body is not None),
    Documented(429, "The rate limit for the key or the address is used up", lambda row: row.auth is not Auth.NONE),
    Documented(431, "The header block is too large", lambda _: True),
    Documented(500, "Something unexpected happened", lambda _: True),
    Documented(503, "There is no configuration yet", lambda row: not row.always, "text/plain"),
    Documented(503, "Callers should not be sent here", lambda row: row.handler == "ready", "text/plain"),
)
"""The answers besides 200, each with the rows that can give it."""


def answers_of(row: ProxyRoute) -> list[Documented[ProxyRoute]]:
    """Return the answers a row can give besides a 200."""
    return [answer for answer in ANSWERS if answer.applies(row)]


def document(settings: ServiceSettings, root: str) -> Json:
    """Return the OpenAPI document of the routes that are on. `root` is the path where the application is mounted."""
    program = ApiDescription("flagsvc proxy", about(settings), settings.client_keys_header_name, ABOUT)
    rows = (row for row in ROUTES if row.listed and row.on(settings))
    schemas = {shape.name: json_schema(shape.inner) for shape in SHAPES}
    return openapi.document(program, (operation(row, settings) for row in rows), schemas, root)


def about(settings: ServiceSettings) -> str:
    """Return a text about the service, and about answers that belong to no operation."""
    return (
        "Evaluates feature flags for client-side applications. HEAD works wherever GET does. OPTIONS on any path is a CORS "
        f"preflight, answered with {settings.cors_options_success_status}. Any other path is answered with 404, any other "
        "method of a path with 405, and `/proxy/all` with 501 while it is switched off."
    )


def operation(row: ProxyRoute, settings: ServiceSettings) -> Operation:
    failures = {str(each.status): answer(each, row) for each in answers_of(row)}
    return Operation(
        row=row,
        path=row.place(settings.base_path),
        name=identifier(row),
        description=row.description,
        schemes=SCHEMES[row.auth],
        path_parameters=row.parameters,
        answers={str(row.status): success(row)} | failures,
    )


def answer(answer: Documented[ProxyRoute], row: ProxyRoute) -> Json:
    """Return the description of an answer of a row other than a 200."""
    if answer.media and not row.wire_format.text_statuses:
        answer = answer._replace(media=JSON)
    return failure(answer, row.error) | headers_of(HEADERS.get(answer.status, {}))


def success(row: ProxyRoute) -> Json:
    """Return the description of the good answer of a row."""
    if row.status == 202:
        return {"description": "Accepted"}
    return {"description": "OK"} | headers_of(HEADERS[200]) | content_of(row)


def identifier(row: ProxyRoute) -> str:
    """Return the stable name of an operation: `get_proxy_all`."""
    words = re.sub(r"[-.{}/]+", "/", row.path).strip("/") or row.handler
    return "_".join([row.method.lower(), *words.split("/")])
