"""Every route of the flag server, with those of the OpenAPI document. Pipeline, OpenAPI document and tests read these rows."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from pkgutil import iter_modules
from types import ModuleType
from urllib.parse import quote

from flagsvc.http import docs_page
from flagsvc.http.answers import Answer
from flagsvc.http.messages import HTML, Headers
from flagsvc.server.api import admin, client, operations
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.openapi import document
from flagsvc.server.api.operations import LASTING, METRICS_PATH, route
from flagsvc.server.api.route import Route

SAFE: Headers = [*docs_page.SAFE, *LASTING]


def show_page(call: ApiCall) -> Answer:
    return Answer(docs_page.page("flagsvc server: endpoints", call.request.path), headers=tuple(SAFE))


def show_file(call: ApiCall) -> Answer:
    """Return the file of the page that the last segment of the path names."""
    name = PurePath(call.request.path.decode("latin-1")).name.lower()
    content_type = docs_page.TYPES[PurePath(name).suffix]
    return Answer(docs_page.contents()[name], headers=(*SAFE, (b"content-type", content_type)))


PAGE = route(
    path="/docs/openapi",
    handler=show_page,
    operation="getOpenApiPage",
    summary="A page that shows the description and tries the endpoints.",
    media=HTML.decode(),
)
FILES = tuple(
    route(
        path=f"/docs/openapi/{name}",
        handler=show_file,
        operation=f"getDocsFile{number}",
        summary="A file of the page.",
        listed=False,
    )
    for number, name in enumerate((*docs_page.BUNDLED, *docs_page.WRITTEN))
)


def docs_routes(others: tuple[Route, ...]) -> tuple[Route, ...]:
    """Return the rows of the document and its page. The document describes the other routes and these."""

    def describe(call: ApiCall) -> Answer:
        """Return the OpenAPI document."""
        place = quote(call.request.root) + call.server.base
        here = [row for row in every if not (call.server.metrics_apart and row.path == METRICS_PATH)]
        return Answer(document(here, place, call.server.described), headers=LASTING)

    described = route(
        path="/docs/openapi.json",
        handler=describe,
        operation="getOpenApi",
        summary="The description of every endpoint.",
    )
    rows = (described, PAGE, *FILES)
    every = (*others, *rows)
    return rows


def find_routes(*packages: ModuleType) -> tuple[Route, ...]:
    """Return the routes of every module of packages that has some."""
    found: list[Route] = []
    for package in packages:
        for module in sorted(each.name for each in iter_modules(package.__path__, f"{package.__name__}.")):
            found += getattr(import_module(module), "ROUTES", ())
    return tuple(found)


_ROWS = (*find_routes(client, admin), *operations.ROUTES)
ROUTES: tuple[Route, ...] = (*_ROWS, *docs_routes(_ROWS))
OPERATIONS = {row.operation: row for row in ROUTES}
"""Name of an operation → its route."""
