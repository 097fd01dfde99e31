"""`GET /` of the proxy names the proxy and its endpoints to every caller, from the start, and shows no configuration.

The OpenAPI document is true: requests made from it get the answers it tells of (specification: GET /docs/openapi.json).
The interactive page in a real browser, under its own Content-Security-Policy and without another host.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from flagsvc.http.server.asgi import AsgiApp
from flagsvc.proxy.api.route import Auth, ProxyRoute
from flagsvc.proxy.api.routes import ROUTES
from support.browser import browser
from support.wirekit import KEY, TOKEN, Opener, in_process, open_wire

BEGINNING = "flagsvc proxy evaluates feature flags for applications"


def test_text_for_a_person(opened: Opener) -> None:
    """Without key and configuration the text has a line for each endpoint, with the kind of its key."""
    wire = opened(document=None)
    answer = wire.get("/", key=None)
    assert (answer.status, answer.header("content-type")) == (200, "text/plain; charset=utf-8")
    text = answer.body.decode()
    assert text.startswith(BEGINNING)
    lines = [line.split() for line in text.splitlines()[2:]]
    assert ["GET", "/proxy"] in [line[:2] for line in lines]
    assert next(line for line in lines if line[:2] == ["POST", "/proxy"])[-2:] == ["(client", "key)"]
    assert ["GET", "/proxy/ready"] in [line[:2] for line in lines]


def test_json_for_a_program(opened: Opener) -> None:
    """`Accept` chooses JSON with the same content; both forms have it in `Vary`."""
    wire = opened()
    text, json = (wire.get("/", key=None, headers=fields) for fields in ({}, {"accept": "application/json"}))
    assert json.header("content-type") == "application/json; charset=utf-8"
    content = json.json()
    assert content["name"] == "flagsvc proxy" and content["description"] in text.body.decode()
    assert {"method": "GET", "path": "/proxy", "key": "client key"}.items() <= content["endpoints"][0].items()
    assert all("Accept" in (each.header("vary") or "").split(", ") for each in (text, json))


ACCEPTS = {
    "*/*": False,
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": False,
    "application/json, text/plain, */*": True,
    "application/json;q=0.5, text/html": False,
    "text/*;q=0.3, Application/JSON; q=0.4": True,
    "application/json;q=0": False,
    "application/json;q=much": False,
    ",;,": False,
    "": False,
}


@pytest.mark.parametrize("accept", ACCEPTS)
def test_what_is_asked_for(opened: Opener, accept: str) -> None:
    """JSON is sent if the caller prefers it at least as much as text; a browser and curl get text."""
    answer = opened().get("/", key=None, headers={"accept": accept})
    assert (answer.header("content-type") or "").startswith("application/json") is ACCEPTS[accept]


@pytest.mark.parametrize("path", ["/", "/base", "/base/", "/BASE/", "/?userId=7"])
def test_a_base_path(opened: Opener, path: str) -> None:
    """The page is the same at the root and below the base path, and its paths have the base path."""
    answer = opened(base_path="/base").get(path, key=None)
    assert answer.status == 200
    assert " /base/proxy " in answer.body.decode() and " /livez " in answer.body.decode()


def test_where_it_is_mounted(over_asgi: Opener) -> None:
    """The paths have the mount in them."""
    wire = over_asgi(base_path="/base")
    for path in ("", "/", "/base"):
        text = wire.get(path, key=None, root="/mounted").body.decode()
        assert " /mounted/base/proxy " in text and " /mounted/livez " in text


def test_it_is_a_route_like_the_others(opened: Opener) -> None:
    """HEAD, entity tag, 304, CORS, preflight, 405, and its own label in the metrics."""
    wire = opened()
    answer = wire.get("/", key=None, headers={"origin": "https://shop.example"})
    assert answer.header("access-control-allow-origin") == "*"
    assert wire.get("/", key=None, headers={"if-none-match": answer.header("etag") or ""}).status == 304
    head = wire.ask("HEAD", "/", key=None)
    assert (head.status, head.body, head.header("content-length")) == (200, b"", str(len(answer.body)))
    assert wire.ask("OPTIONS", "/", key=None).status == 204
    other = wire.ask("POST", "/", key=None)
    assert (other.status, other.header("allow")) == (405, "GET, HEAD, OPTIONS")
    metrics = wire.get("/proxy/internal-backstage/prometheus").body.decode()
    assert 'flagsvc_http_requests_total{method="GET",route="/",status="200"} 1.0' in metrics


def test_it_tells_nothing_of_the_configuration(opened: Opener) -> None:
    """It shows no key, token, name or version, and does not tell whether /proxy/all is on: only key holders may know."""
    off, on = (opened(enable_all_endpoint=each, app_name="my-app").get("/", key=None).body for each in (False, True))
    assert off == on
    for secret in (KEY, TOKEN, "my-app"):
        assert secret not in off.decode()
    for name in ("on", "varied"):
        assert f" {name} " not in off.decode()
    docs, none = (opened(enable_oas=each).get("/", key=None).body for each in (True, False))
    assert b"/docs/openapi" in docs and b"/docs/openapi" not in none


LISTED = [row for row in ROUTES if row.listed]
CONFORMANCE = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
EXAMPLES = 5


def modes(row: ProxyRoute) -> list[GenerationMode]:
    """Return the ways to make requests for a row: valid ones and, if the row takes input, invalid ones."""
    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if row.query or row.body else [GenerationMode.POSITIVE]


CASES = [(row, mode) for row in LISTED for mode in modes(row)]


@pytest.mark.parametrize(("row", "mode"), CASES, ids=lambda each: getattr(each, "path", getattr(each, "name", "")))
def test_answers_are_those_of_the_document(row: ProxyRoute, mode: GenerationMode) -> None:
    """No 5xx, no undocumented status, type, header or shape; a documented request is never a 400."""
    wire = open_wire(in_process, enable_oas=True, enable_all_endpoint=True)
    schema = schemathesis.openapi.from_dict(json.loads(wire.get("/docs/openapi.json").body))
    operation: Any = schema[row.path][row.method]
    operation.app = wire.app
    key = TOKEN if row.auth is Auth.SERVER else KEY

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        response = case.call(headers={} if row.auth is Auth.NONE else {"authorization": key})
        assert response.status_code < 500
        # 404: no toggle has that name
        good = {row.status, 404} if row.parameters else {row.status}
        assert mode is GenerationMode.NEGATIVE or response.status_code in good, response.text
        case.validate_response(response, checks=CONFORMANCE)

    run()
    assert wire.log.lines == []


SECONDS = 60


@contextmanager
def served(app: AsgiApp) -> Iterator[str]:
    """Serve an application on a free loopback port; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)


@pytest.mark.parametrize("path", ["/base/docs/openapi", "/base/docs/openapi/"])
def test_the_page_shows_the_endpoints(path: str) -> None:
    """The page shows every endpoint, and the browser reports no error."""
    with served(open_wire(in_process, enable_oas=True, base_path="/base").app) as address, browser() as page:
        page.go(address + path)
        for shown in ("/base/proxy", "/base/proxy/client/metrics", "/base/docs/openapi.json"):
            page.wait_for(f"!!document.querySelector('[data-path=\"{shown}\"]')")
        assert page.complaints() == []
        assert [asked for asked in page.requested() if not asked.startswith((address, "data:"))] == []


def test_the_browser_would_complain() -> None:
    """The test above relies on this: a violation of a policy is reported."""

    async def forbidden(scope: object, receive: object, send: object) -> None:
        headers = [(b"content-type", b"text/html"), (b"content-security-policy", b"default-src 'none'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"<script>1</script>"})  # type: ignore[operator]

    with served(forbidden) as address, browser() as page:  # type: ignore[arg-type]
        page.go(address)
        page.wait(page.complaints, "a complaint")
