"""The description of the API is valid OpenAPI 3.1 and lists every route (specification: Batch import data set)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis

from flagsvc.frontend.contract import ROWS as FRONTEND_ROWS
from flagsvc.http.shapes import components
from flagsvc.server.api.openapi import document
from flagsvc.server.api.route import Auth
from flagsvc.server.api.routes import ROUTES
from support.flagservers import AppClient, app_client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppClient]:
    """Give a flag server."""
    with app_client(str(tmp_path_factory.mktemp("openapi") / "flags.db")) as made:
        yield made


@pytest.fixture(scope="module")
def content(client: AppClient) -> dict[str, Any]:
    """Give the document as it is served. The request needs no token."""
    answer = client.get("/docs/openapi.json", token=None)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json; charset=utf-8")
    found: dict[str, Any] = answer.json()
    return found


def test_it_is_openapi(content: dict[str, Any]) -> None:
    """The document is valid OpenAPI 3.1, and every reference, parameter and schema in it can be resolved."""
    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(content)))
    schema.validate()
    for result in schema.get_all_operations():
        result.ok().as_strategy()  # type: ignore[union-attr]


def test_every_route_is_there(content: dict[str, Any]) -> None:
    """The operations are exactly the listed routes, with their names, and those of the frontend API.

    An operation requires a token if its route does.
    """
    told = {
        (re.sub(r"{\w+}", "{}", path), method.upper()): operation
        for path, methods in content["paths"].items()
        for method, operation in methods.items()
    }
    assert len({path for path, _ in told}) == len(content["paths"])  # no two templates for one path
    rows = {(re.sub(r":\w+", "{}", row.path), row.method): row for row in ROUTES if row.listed}
    assert set(told) == {*rows, *((row.path, row.method) for row in FRONTEND_ROWS)}
    for place, row in rows.items():
        operation = told[place]
        assert operation["operationId"] == row.operation
        assert bool(operation["security"]) is (row.auth is not Auth.NONE)
        assert ("requestBody" in operation) is (row.body is not None)
        assert {"401", "403"} <= set(operation["responses"]) or row.auth is Auth.NONE
        names = [each["name"] for each in operation.get("parameters", []) if each["in"] == "path"]
        assert len(names) == row.path.count(":")


def test_components_and_server(content: dict[str, Any]) -> None:
    """The components are the error and all named shapes of both APIs. The base path is the address of the server."""
    shapes = [shape for row in (*ROUTES, *FRONTEND_ROWS) for shape in (row.body, row.result) if shape is not None]
    named = components([*shapes, *(row.error for row in FRONTEND_ROWS)])
    assert set(content["components"]["schemas"]) == {"error", *named}
    if any(row.path.endswith("/features-batch/validate") for row in ROUTES):
        assert "importTogglesValidateSchema" in named
    assert "servers" not in document(ROUTES, "")
    assert document(ROUTES, "/flags")["servers"] == [{"url": "/flags"}]


PAGES = {
    "/docs/openapi": ('src="openapi/init.js"', 'data-document="openapi.json"'),
    "/docs/openapi/": ('src="init.js"', 'data-document="../openapi.json"'),
}


@pytest.mark.parametrize("path", PAGES)
def test_the_page_shows_it(client: AppClient, path: str) -> None:
    """Every file that the page links to is served, and a strict policy blocks content from other origins."""
    answer = client.get(path, token=None)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert all(part in answer.body.decode() for part in PAGES[path])
    for name in re.findall(r'(?:src|href)="(?:openapi/)?([\w.]+\.(?:js|css))"', answer.body.decode()):
        file = client.get(f"/docs/openapi/{name}", token=None)
        assert file.status == 200
        assert file.headers["content-type"].startswith(("text/javascript", "text/css"))
        assert file.headers["x-content-type-options"] == "nosniff"
