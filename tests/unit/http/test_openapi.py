"""The writer of OpenAPI documents, with a program made up for it."""

from __future__ import annotations

from typing import Any

from flagsvc.http.openapi import ApiDescription, Operation, document, failure
from flagsvc.http.route import Documented, Parameter, RouteRow
from flagsvc.http.shapes import Array, Integer, Named, Object, String, components

PROGRAM = ApiDescription("library", "Lends books.", "x-card", {"reader": "A reader's card."})
BOOK = Named("Book", Object({"title": String(), "pages": Integer(minimum=1)}, required=("title",)))
ERROR = Named("Error", Object({"message": String()}))
SHELF = RouteRow(
    path="/books",
    summary="List books",
    tag="books",
    query=(
        Parameter("word", "Words of the title.", repeated=True),
        Parameter("limit", "How many at most.", "integer"),
        Parameter("fields", "Any field.", style="deepObject", schema={"type": "object"}),
    ),
    result=Array(BOOK),
)
ADD = RouteRow(
    path="/books/{shelf}",
    method="POST",
    summary="Add a book",
    tag="books",
    body=BOOK,
    body_needed=False,
    example={"title": "Emma"},
    media="text/plain; charset=utf-8",
    as_json=BOOK,
)
MISSING = Documented[RouteRow](404, "There is no such shelf.", lambda row: True)


def written(row: RouteRow, **given: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": "one", "description": "", "schemes": (), "answers": {}, **given}
    content = document(PROGRAM, [Operation(row=row, path=row.path, **fields)], components([BOOK, ERROR]), "")
    found: dict[str, Any] = content["paths"][row.path][row.method.lower()]
    return found


def test_parameters() -> None:
    """Parameters of the path come first. A repeatable parameter is a list; a parameter with a style has its own schema."""
    text, number = {"type": "string"}, {"type": "integer"}
    assert written(SHELF, path_parameters=("shelf",))["parameters"] == [
        {"name": "shelf", "in": "path", "required": True, "schema": text},
        {"name": "word", "in": "query", "description": "Words of the title.", "schema": {"type": "array", "items": text}},
        {"name": "limit", "in": "query", "description": "How many at most.", "schema": number},
        {
            "name": "fields",
            "in": "query",
            "description": "Any field.",
            "style": "deepObject",
            "explode": True,
            "schema": {"type": "object"},
        },
    ]


def test_a_body_is_a_shape_and_an_example() -> None:
    """The row decides whether the body is required."""
    reference = {"$ref": "#/components/schemas/Book"}
    body = {"schema": reference, "example": {"title": "Emma"}}
    assert written(ADD)["requestBody"] == {"required": False, "content": {"application/json": body}}


def test_an_error_is_json_a_text_or_nothing() -> None:
    """The media type decides the form of an error."""
    shape = {"schema": {"$ref": "#/components/schemas/Error"}}
    text = Documented[RouteRow](401, "No card.", lambda row: True, "text/plain")
    empty = Documented[RouteRow](304, "Unchanged.", lambda row: True, "")
    assert failure(MISSING, ERROR) == {"description": MISSING.description, "content": {"application/json": shape}}
    assert failure(text, ERROR)["content"] == {"text/plain": {"schema": {"type": "string"}}}
    assert failure(empty, ERROR) == {"description": "Unchanged."}
