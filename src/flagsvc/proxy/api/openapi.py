"""The proxy's OpenAPI document (specification: GET /docs/openapi.json)."""

from __future__ import annotations

import re

from flagsvc.http import openapi
from flagsvc.http.media import JSON
from flagsvc.http.openapi import ApiDescription, Json, Operation, content_of, failure, headers_of
from flagsvc.http.route import Documented
from flagsvc.http.shapes import json_schema
from flagsvc.proxy.api.dialects import DIALECTS
from flagsvc.proxy.api.route import Auth, ProxyRoute
from flagsvc.proxy.api.routes import ROUTES, answers_of
from flagsvc.proxy.api.schemas import OPERATION_SHAPES
from flagsvc.proxy.api.settings import ServiceSettings

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
