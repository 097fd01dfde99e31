"""CORS by the rules of npm cors 2.8, every option (behaviour: CORS)."""

from __future__ import annotations

from typing import Any

import pytest

from support.wirekit import Opener

A, B, EVIL = "https://a.example", "https://b.example", "https://evil.example"
ASKS = {"origin": A, "access-control-request-method": "GET", "access-control-request-headers": "authorization, X-Foo"}


def test_preflight_as_it_comes(opened: Opener) -> None:
    """A preflight is a 204 that allows what it asks for and may be cached for two days; it needs no key, on any path."""
    for path in ("/proxy", "/proxy/all", "/nowhere", "/proxy/health", "/docs/openapi.json"):
        answer = opened().ask("OPTIONS", path, ASKS, key=None)
        assert (answer.status, answer.body) == (204, b"")
        assert sorted(answer.fields) == [
            ("access-control-allow-headers", "authorization, X-Foo"),
            ("access-control-allow-methods", "GET, POST"),
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", "ETag"),
            ("access-control-max-age", "172800"),
            ("content-length", "0"),
            ("vary", "Access-Control-Request-Headers"),
        ]


def test_preflight_that_asks_for_no_headers(opened: Opener) -> None:
    """Without requested headers none are allowed; an OPTIONS that is no preflight is answered as one."""
    answer = opened().ask("OPTIONS", "/proxy", key=None)
    assert answer.status == 204
    assert answer.header("access-control-allow-headers") is None
    assert answer.header("access-control-allow-origin") == "*"


@pytest.mark.parametrize(
    ("settings", "header", "value"),
    [
        ({"cors_allowed_headers": ("x-a",)}, "vary", None),
        ({"cors_credentials": True}, "access-control-allow-origin", "*"),
        ({"cors_exposed_headers": ()}, "access-control-expose-headers", None),
        ({"cors_max_age": 0}, "access-control-max-age", "0"),
        ({"cors_origin": A}, "vary", "Origin, Access-Control-Request-Headers"),
    ],
)
def test_preflight_options(opened: Opener, settings: dict[str, Any], header: str, value: str | None) -> None:
    """Each setting has this header. The rows of options (`option_rows_callers.py`) show the header that each option sets."""
    assert opened(**settings).ask("OPTIONS", "/proxy", ASKS).header(header) == value


def test_preflight_continue(opened: Opener) -> None:
    """With the option, the answer is a 200 with Allow and the CORS headers; an unknown path is a 404."""
    wire = opened(cors_preflight_continue=True)
    answer = wire.ask("OPTIONS", "/proxy", ASKS, key=None)
    assert (answer.status, answer.header("allow")) == (200, "GET, HEAD, POST, OPTIONS")
    assert answer.header("access-control-allow-headers") == "authorization, X-Foo"
    assert answer.header("access-control-allow-methods") == "GET, POST"
    assert wire.ask("OPTIONS", "/proxy/health").header("allow") == "GET, HEAD, OPTIONS"
    assert wire.ask("OPTIONS", "/nowhere").status == 404


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
@pytest.mark.parametrize("origin", [None, A, EVIL])
def test_one_origin_is_always_sent(opened: Opener, method: str, origin: str | None) -> None:
    """A single origin is sent to every caller, with Vary: Origin."""
    headers = {} if origin is None else {"origin": origin}
    answer = opened(cors_origin=B).ask(method, "/proxy", headers)
    assert answer.header("access-control-allow-origin") == B
    assert (answer.header("vary") or "").startswith("Origin, ")


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
@pytest.mark.parametrize(("origin", "sent"), [(None, None), (A, A), (B, B), (EVIL, None), ("null", None), ("", None)])
def test_a_list_of_origins(opened: Opener, method: str, origin: str | None, sent: str | None) -> None:
    """The request's origin is sent back when it is in the list; the status is the same either way."""
    headers = {} if origin is None else {"origin": origin}
    answer = opened(cors_origin=(A, B)).ask(method, "/proxy", headers)
    assert answer.status == (200 if method == "GET" else 204)
    assert answer.header("access-control-allow-origin") == sent
    assert (answer.header("vary") or "").startswith("Origin, ")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://www.example.com", True),
        ("https://a.b-c.example.com", True),
        ("https://example.com", False),
        ("https://.example.com", False),
        ("https://evilexample.com", False),
        ("http://www.example.com", False),
        ("https://www.example.com.evil.org", False),
        ("https://evil.org/.example.com", False),
        ("https://evil.org?.example.com", False),
        ("https://evil.org#.example.com", False),
        ("https://evil.org:1@x.example.com", False),
        ("https://www.example.com:8443", False),
        ("https://wwwXexample.com", False),
        ("https://www.example.com\n", False),
        ("http://localhost:5173", True),
        ("http://localhost", False),
        (A, True),
    ],
)
def test_patterns(opened: Opener, origin: str, allowed: bool) -> None:
    """`*` inside an origin stands for labels of a host or for a port, and for nothing else."""
    wire = opened(cors_origin=("https://*.example.com", "http://localhost:*", A))
    answer = wire.get("/proxy", {"origin": origin})
    assert answer.header("access-control-allow-origin") == (origin if allowed else None)


@pytest.mark.parametrize(
    ("method", "target", "headers", "key", "status"),
    [
        ("GET", "/proxy", {}, "client-key", 503),
        ("GET", "/proxy", {}, "wrong", 401),
        ("GET", "/nowhere", {}, None, 404),
        ("PUT", "/proxy", {}, None, 405),
        ("GET", "/proxy/all", {}, "client-key", 501),
        ("POST", "/proxy", {"content-length": "1000000"}, "client-key", 413),
        ("POST", "/proxy", {"content-length": "1", "content-type": "a/b"}, "client-key", 415),
        ("GET", "/proxy?properties=x", {}, "client-key", 400),
        ("GET", "/proxy", {"if-none-match": "*"}, "client-key", 304),
        ("GET", "/proxy/internal-backstage/prometheus", {}, None, 200),
    ],
)
def test_every_answer_carries_cors_headers(
    opened: Opener, method: str, target: str, headers: dict[str, str], key: str | None, status: int
) -> None:
    """Errors have CORS headers too: without them a script cannot read the error."""
    closed: dict[str, Any] = {"document": None} if status == 503 else {}
    for settings in ({"cors_origin": (A,)}, {"cors_origin": A}):
        answer = opened(**settings, **closed).ask(method, target, {**headers, "origin": A}, key=key)
        assert answer.status == status
        assert answer.header("access-control-allow-origin") == A
        assert answer.header("access-control-expose-headers") == "ETag"
        assert "Origin" in (answer.header("vary") or "")
