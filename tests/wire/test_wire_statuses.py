"""Statuses and bodies, row by row (behaviour: Order of checks; Statuses and bodies; specification: Errors)."""

from __future__ import annotations

from typing import Any

import pytest

from support.wirekit import Opener

EVERYTHING: dict[str, Any] = {"enable_oas": True, "enable_all_endpoint": True}


@pytest.mark.parametrize("path", ["/proxy", "/proxy/all", "/nowhere"])
def test_head_carries_no_body_with_an_error_either(opened: Opener, path: str) -> None:
    """A refusal of HEAD has no body either, but its length."""
    answer = opened().ask("HEAD", path, key=None)
    assert answer.status in (401, 404)
    assert answer.body == b""
    assert answer.header("content-length") not in (None, "0")


@pytest.mark.parametrize("target", ["/proxy", "/proxy/health", "/nowhere"])
def test_not_ready(opened: Opener, target: str) -> None:
    """Before the first configuration the answer is a 503 text with Retry-After, which must not be cached."""
    answer = opened(document=None).get(target)
    assert (answer.status, answer.body) == (503, b"Not Ready")
    assert answer.header("retry-after") == "1"
    assert answer.header("cache-control") == "no-store"
    assert answer.header("access-control-allow-origin") == "*"


@pytest.mark.parametrize("target", ["/proxy/ready", "/readyz", "/internal-backstage/ready"])
def test_readiness(opened: Opener, target: str) -> None:
    """200 while the proxy wants requests, else 503 with one word for the reason, as text, never from a cache."""
    wire = opened(document=None)
    cold = wire.get(target, key=None)
    assert (cold.status, cold.body, cold.header("retry-after")) == (503, b"cold", "1")
    wire.serve({"version": 2, "features": []})
    ready = wire.get(target, key=None)
    assert (ready.status, ready.body) == (200, b"ready")
    wire.service.readiness.is_draining = True
    ending = wire.get(target, key=None)
    assert (ending.status, ending.body) == (503, b"draining")
    for answer in (cold, ready, ending):
        assert answer.header("content-type") == "text/plain; charset=utf-8"
        assert answer.header("cache-control") == "no-store"
    assert wire.get("/proxy").status == wire.get("/proxy/health").status == 200


def test_health(opened: Opener) -> None:
    """The answer is `ok` as HTML, two bytes, with a weak entity tag."""
    for target in ("/proxy/health", "/proxy/live"):
        answer = opened().get(target, key=None)
        assert answer.body == b"ok"
        assert answer.header("content-type") == "text/html; charset=utf-8"
        assert (answer.header("etag") or "").startswith('W/"')


def test_all_is_not_implemented_until_switched_on(opened: Opener) -> None:
    """The answer is a 501 that names the option to set, for GET and POST."""
    wire = opened()
    for answer in (wire.get("/proxy/all"), wire.post("/proxy/all", {})):
        assert answer.status == 501
        assert answer.header("content-type") == "text/plain; charset=utf-8"
        assert answer.header("cache-control") == "no-store"
        assert b"enableAllEndpoint" in answer.body
        assert b"ENABLE_ALL_ENDPOINT" in answer.body


def test_unknown_path(opened: Opener) -> None:
    """The answer is a 404 JSON error, which must not be cached."""
    answer = opened().get("/no/where")
    assert answer.status == 404
    assert answer.json() == {"error": "there is nothing at `/no/where`"}
    assert answer.header("content-type") == "application/json; charset=utf-8"
    assert answer.header("cache-control") == "no-store"


@pytest.mark.parametrize("method", ["get", "BREW"])
def test_unknown_methods(opened: Opener, over_asgi: Opener, method: str) -> None:
    """405 where the server lets them through, 400 from the parser under a server of its own; methods are case sensitive."""
    assert over_asgi().ask(method, "/proxy").json() == {"error": f"`/proxy` does not take `{method}`"}
    assert opened().ask(method, "/proxy").status in (400, 405)


@pytest.mark.parametrize("path", ["/proxy/", "/PROXY", "/Proxy/Health", "/proxy/HEALTH/", "/proxy//"])
def test_slash_and_case_do_not_matter(opened: Opener, path: str) -> None:
    """A slash at the end and another case of the path are accepted."""
    assert opened().get(path).status == 200


@pytest.mark.parametrize("path", ["//proxy", "/pro%78y", "/proxy/x", "/proxyx", "/x", "/."])
def test_other_paths_are_unknown(opened: Opener, path: str) -> None:
    """No other path is a route."""
    assert opened().get(path).status == 404


def test_base_path(opened: Opener) -> None:
    """With a base path every route is below it and nowhere else, but for probes: those of Edge are at both places."""
    wire = opened(base_path="/base/Path", **EVERYTHING)
    for path in ("/proxy", "/proxy/health", "/proxy/live", "/docs/openapi.json", "/docs/openapi", "/proxy/all"):
        assert wire.get("/base/Path" + path).status == 200
        assert wire.get("/base/path" + path).status == 200
        assert wire.get(path).status == 404
    for path in ("/livez", "/readyz", "/internal-backstage/health", "/internal-backstage/ready"):
        assert wire.get(path, key=None).status == 200
        assert wire.get("/base/path" + path, key=None).status == (404 if path.endswith("z") else 200)


def test_mounted_below_a_path(over_asgi: Opener) -> None:
    """In another application the routes are below where it is mounted."""
    wire = over_asgi()
    assert wire.get("/proxy", root="/flags").status == 200
    assert wire.get("/proxy/health", root="/flags/v1").status == 200
    assert wire.get("/flags/proxy", root="/flags").status == 404


def test_what_a_caller_sent_is_not_reflected_at_length(opened: Opener) -> None:
    """A message shows the beginning of a path, as JSON text."""
    answer = opened().get("/" + "x" * 10_000 + '"<script>')
    assert answer.status == 404
    assert len(answer.json()["error"]) < 300
