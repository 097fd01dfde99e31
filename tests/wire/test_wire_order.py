"""The order of checks, each pair of neighbours (behaviour: Order of checks; Statuses and bodies)."""

from __future__ import annotations

from typing import Any

import pytest

from support.wirekit import Opener

CLOSED: dict[str, Any] = {"document": None}
LARGE = b"[" + b" " * 200_000 + b"]"


@pytest.mark.parametrize(
    ("opening", "method", "target", "headers", "key", "body", "status"),
    [
        # OPTIONS before readiness, the path and the key
        (CLOSED, "OPTIONS", "/proxy", {}, None, b"", 204),
        ({}, "OPTIONS", "/nowhere", {}, None, b"", 204),
        ({}, "OPTIONS", "/proxy", {"content-type": "text/plain"}, None, LARGE, 204),
        # 503 before 404, 405, 401, 501, 415, 413
        (CLOSED, "GET", "/nowhere", {}, None, b"", 503),
        (CLOSED, "PUT", "/proxy", {}, None, b"", 503),
        (CLOSED, "GET", "/proxy", {}, None, b"", 503),
        (CLOSED, "GET", "/proxy/health", {}, None, b"", 503),
        (CLOSED, "GET", "/proxy/internal-backstage/prometheus", {}, None, b"", 503),
        (CLOSED, "POST", "/proxy/all", {"content-type": "text/plain"}, "client-key", LARGE, 503),
        ({**CLOSED, "enable_oas": True}, "GET", "/docs/openapi.json", {}, None, b"", 503),
        # but liveness
        (CLOSED, "GET", "/proxy/live", {}, None, b"", 200),
        (CLOSED, "GET", "/livez", {}, None, b"", 200),
        # and readiness, which says why not itself
        (CLOSED, "PUT", "/readyz", {}, None, b"", 405),
        (CLOSED, "GET", "/readyz", {}, None, b"", 503),
        # 404 and 405 before 401
        ({}, "GET", "/nowhere", {}, None, b"", 404),
        ({}, "DELETE", "/proxy", {}, None, b"", 405),
        # 401 before 501, 415, 413, 400
        ({}, "GET", "/proxy/all", {}, None, b"", 401),
        ({}, "POST", "/proxy", {"content-type": "text/plain"}, None, b"x", 401),
        ({}, "POST", "/proxy", {}, "wrong", LARGE, 401),
        ({}, "POST", "/proxy", {}, "wrong", b"{", 401),
        ({}, "GET", "/proxy?properties=x", {}, "wrong", b"", 401),
        # 501 before 415, 413, 400
        ({}, "POST", "/proxy/all", {"content-type": "text/plain"}, "client-key", b"x", 501),
        ({}, "POST", "/proxy/all", {}, "client-key", LARGE, 501),
        ({}, "POST", "/proxy/all", {}, "client-key", b"{", 501),
        # 415 before 413 and 400
        ({}, "POST", "/proxy", {"content-type": "text/plain"}, "client-key", LARGE, 415),
        ({}, "POST", "/proxy", {"content-type": "text/plain"}, "client-key", b"{", 415),
        # 413 before 400
        ({}, "POST", "/proxy", {}, "client-key", b"{" + LARGE, 413),
        ({}, "POST", "/proxy", {}, "client-key", b"{", 400),
        ({}, "POST", "/proxy", {}, "client-key", b"{}", 200),
    ],
)
def test_the_first_check_that_fails_decides(
    opened: Opener,
    opening: dict[str, Any],
    method: str,
    target: str,
    headers: dict[str, str],
    key: str | None,
    body: bytes,
    status: int,
) -> None:
    """If two things are wrong, the one that is checked first gives the answer."""
    assert opened(**opening).ask(method, target, headers, key=key, body=body).status == status


def test_a_key_is_asked_for_before_a_304(opened: Opener) -> None:
    """A caller with an entity tag but without a key gets no 304."""
    wire = opened()
    tag = wire.get("/proxy").header("etag") or ""
    assert wire.get("/proxy", {"if-none-match": tag}).status == 304
    assert wire.get("/proxy", {"if-none-match": tag}, key=None).status == 401
    assert wire.get("/proxy", {"if-none-match": "*"}, key="wrong").status == 401


def test_a_body_is_not_read_before_the_key_is_checked(opened: Opener) -> None:
    """A caller without a key cannot make the proxy read a body."""
    wire = opened()
    answer = wire.post("/proxy", b"", key="wrong", chunks=[b"{", b"}"])
    assert answer.status == 401
    assert wire.last is not None
    assert wire.last.taken == 0
