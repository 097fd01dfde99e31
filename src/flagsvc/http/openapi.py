"""Writes the OpenAPI 3.1 document of a program from its route rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from flagsvc.core.version import VERSION
from flagsvc.http.media import JSON
from flagsvc.http.route import Documented, Parameter, R, RouteRow
from flagsvc.http.shapes import Shape, json_schema
from flagsvc.http.streams import EVENT_STREAM

Json: TypeAlias = dict[str, Any]

TEXT: Json = {"type": "string"}
EVENT: Json = {"type": "object", "properties": {"event": TEXT, "data": TEXT, "id": TEXT, "retry": {"type": "integer"}}}
"""The schema of one event of a stream."""
LICENSE: Json = {"name": "Apache-2.0", "identifier": "Apache-2.0"}


class ApiDescription(NamedTuple):
    """The facts about the program. `schemes` describes each kind of key by its name; all keys come in one `header`."""

    title: str
    description: str
    header: str
    schemes: Mapping[str, str]


class Operation(NamedTuple):
    """One method of one path. `schemes` names the keys that open it, and `path_parameters` the parameters in braces.

    `answers` has the description of each answer by its status, and `shapes` are the shapes of body and answers.
    """

    row: RouteRow
    path: str
    name: str
    description: str
    schemes: tuple[str, ...]
    answers: Json
    path_parameters: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()


def document(program: ApiDescription, operations: Iterable[Operation], schemas: Json, place: str) -> Json:
    """Return the document. `place` is the prefix of every path, or empty."""
    paths: dict[str, Json] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.row.method.lower()] = written(each)
    content: Json = {
        "openapi": "3.1.0",
        "info": {"title": program.title, "version": VERSION, "description": program.description, "license": LICENSE},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": schemes(program)},
    }
    return content | ({"servers": [{"url": place}]} if place else {})


def schemes(program: ApiDescription) -> Json:
    header = {"type": "apiKey", "in": "header", "name": program.header}
    return {name: {**header, "description": text} for name, text in program.schemes.items()}


def written(operation: Operation) -> Json:
    """Return the description of one method of one path."""
    row = operation.row
    content: Json = {
        "operationId": operation.name,
        "summary": row.summary,
        "tags": [row.tag],
        "security": [{name: []} for name in operation.schemes],
        "responses": operation.answers,
    }
    if operation.description:
        content["description"] = operation.description
    if named := parameters(operation):
        content["parameters"] = named
    if row.body is not None:
        content["requestBody"] = request_body(row, row.body)
    return content


def parameters(operation: Operation) -> list[Json]:
    """Return the parameters of the path and of the query string."""
    found: list[Json] = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in operation.path_parameters]
    return found + [parameter(each) for each in operation.row.query]


def parameter(one: Parameter) -> Json:
    """Return one parameter of the query string."""
    kind: Json = {"type": one.kind}
    schema = one.schema or ({"type": "array", "items": kind} if one.repeated else kind)
    style = {"style": one.style, "explode": True} if one.style else {}
    return {"name": one.name, "in": "query", "description": one.description, **style, "schema": schema}


def request_body(row: RouteRow, shape: Shape) -> Json:
    """Return the description of a row's request body."""
    example = {} if row.example is None else {"example": row.example}
    return {"required": row.body_needed, "content": {JSON: {"schema": json_schema(shape), **example}}}


def content_of(row: RouteRow) -> Json:
    """Return the member `content` of a row's successful answer: the schema of each media type; nothing for an empty body."""
    media = row.media.partition(";")[0]
    found = {} if row.result is None and media == JSON else content(media, row.result)
    found |= {} if row.as_json is None else content(JSON, row.as_json)
    return {"content": found} if found else {}


def failure(answer: Documented[R], error: Shape) -> Json:
    """Return the description of an error. `error` is the shape of its JSON body."""
    body = content(answer.media, error if answer.media == JSON else None) if answer.media else {}
    return {"description": answer.description} | ({"content": body} if body else {})


def content(media: str, shape: Shape | None) -> Json:
    """Return the media type of a body with its schema. A body without a shape is a text, or the events of a stream."""
    plain = EVENT if media == EVENT_STREAM.decode() else TEXT
    return {media: {"schema": plain if shape is None else json_schema(shape)}}


def headers_of(texts: Mapping[str, str]) -> Json:
    """Return the member `headers` of an answer: the description of each header; nothing without headers."""
    found = {name: {"description": text, "schema": TEXT} for name, text in texts.items()}
    return {"headers": found} if found else {}
