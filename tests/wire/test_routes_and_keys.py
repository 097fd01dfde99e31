"""Every route with every kind of key, and with requests that are too large, malformed or slow: one table, made of the routes' rows.

The keys and the order of checks decide (behaviour: Order of checks; Statuses and bodies; specification: Authentication).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from flagsvc.http.reports import BULK, CLIENT_METRICS, CLIENT_REGISTRATION, METRICS, REGISTRATION
from flagsvc.http.shapes import Shape
from flagsvc.proxy.api.dialects import EVALUATES, ROUTES, TOKENS
from flagsvc.proxy.api.route import Auth, Limit, ProxyRoute
from flagsvc.proxy.api.schemas import LOOKUP
from support.wirekit import KEY, TOKEN, Answer, Opener, Wire

EVERYTHING_ON: dict[str, Any] = {
    "enable_oas": True,
    "enable_all_endpoint": True,
    "ofrep": True,
    "body_limit": 2_000,
    "metrics_body_limit": 3_000,
}
OPENS: dict[Auth, set[str]] = {Auth.NONE: {KEY, TOKEN}, Auth.CLIENT: {KEY}, Auth.SERVER: {TOKEN}, Auth.EITHER: {KEY, TOKEN}}
"""Which keys open a route of each kind."""
WRONG: dict[str, str | None] = {
    "no key": None,
    "an empty key": "",
    "blanks": "  ",
    "a wrong key": "wrong",
    "the beginning of a key": KEY[:-1],
    "a key and more": KEY + "x",
    "a key in capitals": KEY.upper(),
    "a key as a bearer": f"Bearer {KEY}",
    "both keys": f"{KEY},{TOKEN}",
    "a key in quotation marks": f'"{KEY}"',
    "a star": "*",
    "a key of another alphabet": "cliënt-key",
    "a long key": "k" * 10_000,
}
"""Keys that open no route that needs a key."""
BODIES: dict[Shape | None, bytes] = {
    None: b"",
    LOOKUP: b'{"context":{"userId":"7"},"toggles":["on","nowhere"]}',
    METRICS: b'{"appName":"a","instanceId":"i","bucket":{"start":"2026-01-01T00:00:00Z","stop":"2026-01-01T00:01:00Z",'
    b'"toggles":{"on":{"yes":1,"no":0,"variants":{}}}}}',
    REGISTRATION: b'{"appName":"a","instanceId":"i","interval":1000,"started":"2026-01-01T00:00:00Z","strategies":["default"]}',
}
BODIES[EVALUATES] = b'{"context":{"targetingKey":"7"}}'
BODIES[CLIENT_METRICS] = BODIES[METRICS]
BODIES[CLIENT_REGISTRATION] = BODIES[REGISTRATION]
BODIES[BULK] = b'{"applications":[{"appName":"a","instanceId":"i"}],"metrics":[{"featureName":"on","appName":"a","yes":1}]}'
BODIES[TOKENS] = b'{"tokens":["nobody\'s"]}'
"""A good body for each schema."""
MALFORMED = (
    b"{",
    b"[]",
    b"null",
    b"7",
    b'"x"',
    b"\xff",
    b"{}{}",
    b'{"a":NaN}',
    b"[" * 1_900,
    b'{"context":7,"toggles":7,"bucket":7}',
)
NO_KEY = "This endpoint requires an API token. Please add an authorization header to your request with a valid token"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE")


def of(rows: Sequence[ProxyRoute]) -> pytest.MarkDecorator:
    """Run a test for each of these rows."""
    return pytest.mark.parametrize("row", rows, ids=lambda row: f"{row.method} {row.path}")


FINITE = [row for row in ROUTES if row.media != "text/event-stream"]
"""Routes whose answers end; `tests/unit/proxy/api` has the others, in `test_streams.py` and `test_deltas.py`."""
every = of(FINITE)
keyed = of([row for row in FINITE if row.auth is not Auth.NONE])
posted = of([row for row in ROUTES if row.body])


def place(row: ProxyRoute) -> str:
    """Return a path of a route; it has the name of a toggle."""
    return row.path.replace("{name}", "on")


def opens(row: ProxyRoute, key: str | None) -> int:
    """Return the status of a good request with a key: at the first page, one with a key comes from an SDK with a wrong URL."""
    if row.auth is Auth.NONE:
        return 404 if row.handler == "welcome" and key is not None else row.status
    if key in OPENS[row.auth] or (row.wire_format.reads_bearer and key == f"Bearer {KEY}" and KEY in OPENS[row.auth]):
        return row.status
    if row.wire_format.tells_key_types and key == f"Bearer {KEY}":
        return 403
    return 403 if row.wire_format.tells_key_types and key in (KEY, TOKEN) else 401


def with_key(row: ProxyRoute) -> str | None:
    """Return a key that opens a route, None where none is needed."""
    return None if row.auth is Auth.NONE else sorted(OPENS[row.auth])[0]


def asked(wire: Wire, row: ProxyRoute, key: str | None, body: bytes | None = None, **more: Any) -> Answer:
    """Return the answer of a route to a good request, or to one with another body."""
    content = BODIES[row.body] if body is None else body
    described = {"content-type": "application/json"} if row.body else {}
    return wire.ask(row.method, place(row), more.pop("headers", {}) | described, key=key, body=content, **more)


def said(answer: Answer) -> str:
    """Return the message of an error."""
    content = answer.json()
    return str(content.get("error") or content.get("message") or content["errorDetails"])


@every
def test_the_right_key_opens_and_no_other(opened: Opener, row: ProxyRoute) -> None:
    """Each route opens only to the keys of its kind, with the documented type and CORS headers; one without a key ignores them."""
    wire = opened(**EVERYTHING_ON)
    for key in (KEY, TOKEN):
        answer = asked(wire, row, key)
        assert answer.status == opens(row, key), key
        assert answer.header("access-control-allow-origin") == "*"
        assert answer.header("content-length") == str(len(answer.body))
        if row.listed and answer.status == 200:
            assert (answer.header("content-type") or "").split(";")[0] == row.media
    for name, key in WRONG.items():  # type: ignore[assignment]
        assert asked(wire, row, key).status == opens(row, key), name


@of([row for row in FINITE if row.method == "GET"])
def test_head_is_get_without_a_body(opened: Opener, row: ProxyRoute) -> None:
    """HEAD works on every GET route: status and headers of GET, no body."""
    wire, target = opened(**EVERYTHING_ON), f"{place(row)}?sessionId=1"
    got, head_ = (wire.ask(method, target, key=with_key(row)) for method in ("GET", "HEAD"))
    assert (head_.status, head_.body) == (200, b"")
    if row.handler != "prometheus":  # whose text counts the request before
        assert head_.fields == got.fields


@keyed
def test_all_refusals_are_one(opened: Opener, row: ProxyRoute) -> None:
    """A missing key and a wrong one get the same answer to the byte, which no cache may store."""
    wire = opened(**EVERYTHING_ON)
    keys = [key for key in (*WRONG.values(), KEY, TOKEN) if opens(row, key) == 401]
    answers = [asked(wire, row, key) for key in keys]
    assert len({(each.status, each.body, tuple(each.fields)) for each in answers}) == 1
    assert (answers[0].header("cache-control"), answers[0].header("etag")) == ("no-store", None)
    assert answers[0].status == 401
    assert answers[0].header("access-control-allow-origin") == "*"
    is_text = bool(row.wire_format.text_statuses)
    assert (answers[0].body == b"Unauthorized") if is_text else (said(answers[0]) == NO_KEY)
    assert (answers[0].header("content-type") == "text/plain; charset=utf-8") is is_text


@keyed
def test_a_key_counts_in_its_header_alone(opened: Opener, row: ProxyRoute) -> None:
    """A key in the query, in a cookie or in another header does not count. The 401 names the header if an option moved it."""
    wire, right = opened(**EVERYTHING_ON), with_key(row) or ""
    elsewhere = {"cookie": f"authorization={right}", "x-authorization": right, "proxy-authorization": right}
    assert asked(wire, row, None, headers=elsewhere).status == 401
    described = [("content-type", "application/json")]
    assert wire.ask(row.method, f"{place(row)}?authorization={right}", described, key=None, body=BODIES[row.body]).status == 401
    other = opened(**EVERYTHING_ON, client_keys_header_name="x-key")
    refused = asked(other, row, right)
    assert refused.status == 401
    assert row.wire_format.text_statuses or "Please add a header `x-key` to your request" in said(refused)
    assert asked(other, row, None, headers={"x-key": right}).status == row.status


@every
def test_two_lines_with_keys(opened: Opener, row: ProxyRoute) -> None:
    """Two servers could read different lines and admit different callers: 400, whichever is right."""
    for name in ("authorization", "x-key"):
        wire, right = opened(**EVERYTHING_ON, client_keys_header_name=name), with_key(row) or KEY
        for keys in ((right, right), (right, "wrong"), ("wrong", right), ("", right), ("wrong", "")):
            fields = [("content-type", "application/json"), *((name.title(), key) for key in keys)]
            answer = wire.ask(row.method, place(row), fields, key=None, body=BODIES[row.body])
            if row.auth is Auth.NONE:
                assert answer.status == opens(row, right)
            else:
                assert (answer.status, said(answer)) == (400, f"the header `{name}` came more than once")


@every
def test_other_methods(opened: Opener, row: ProxyRoute) -> None:
    """A method that the path does not have is a 405 with the list of its methods, whatever the key."""
    wire = opened(**EVERYTHING_ON)
    there = {each.method for each in ROUTES if each.path == row.path}
    there |= {"HEAD"} if "GET" in there else set()
    for method in set(METHODS) - there:
        for key in (None, KEY, TOKEN):
            answer = wire.ask(method, place(row), key=key)
            assert (answer.status, answer.header("cache-control")) == (405, "no-store"), method
            assert there <= set((answer.header("allow") or "").split(", "))


@every
@pytest.mark.parametrize("key", [None, KEY, TOKEN, "wrong"], ids=["no key", "client key", "token", "wrong key"])
def test_what_is_too_large(opened: Opener, row: ProxyRoute, key: str | None) -> None:
    """Head and query are refused for any caller. A body is refused only for a caller with the right key: no other body is read."""
    wire = opened(**EVERYTHING_ON)
    allowed = row.auth is Auth.NONE or key in OPENS[row.auth]
    assert asked(wire, row, key, headers={"x-large": "x" * 17_000}).status == 431
    assert wire.ask(row.method, f"{place(row)}?a={'b' * 17_000}", key=key).status == 414
    if row.limit is not Limit.NONE:
        limit = EVERYTHING_ON[row.limit.value]
        for chunks in (None, [b"{", b" " * limit, b"}"]):
            answer = asked(wire, row, key, b" " * (limit + 1), chunks=chunks)
            assert (answer.status, answer.header("cache-control")) == (413 if allowed else opens(row, key), "no-store")
            assert wire.last is not None
            assert allowed or wire.last.taken == 0


@posted
def test_what_is_malformed(opened: Opener, row: ProxyRoute) -> None:
    """A wrong body is a 400 for a caller with the right key, and a 401 for others; the text quotes nothing of it."""
    wire = opened(**EVERYTHING_ON)
    for body in MALFORMED:
        answer = asked(wire, row, with_key(row), body)
        assert answer.status == 400, body[:40]
        assert said(answer) and answer.header("cache-control") == "no-store"
        assert row.auth is Auth.NONE or asked(wire, row, "wrong", body).status == 401
    for kind in ("text/html", "application/xml", "application/json; charset=ebcdic"):
        answer = wire.ask(row.method, place(row), {"content-type": kind}, key=with_key(row), body=BODIES[row.body])
        assert answer.status == 415, kind


@posted
def test_what_is_slow(opened: Opener, row: ProxyRoute) -> None:
    """A body that comes byte by byte is read like any other. The proxy does not wait for the body of a caller without a key."""
    wire = opened(**EVERYTHING_ON)
    drops = [bytes([each]) for each in BODIES[row.body]]
    assert asked(wire, row, with_key(row), chunks=drops).status == row.status
    assert wire.last is not None
    assert wire.last.taken == len(drops)
    if row.auth is not Auth.NONE:
        assert asked(wire, row, "wrong", chunks=drops).status == 401
        assert wire.last.taken == 0
    counted = wire.counted()
    asked(wire, row, with_key(row), gone=True)
    assert wire.counted() == {} and (
        counted or row.body in (REGISTRATION, CLIENT_REGISTRATION, TOKENS) or row.handler in ("metrics", "bulk")
    )


@every
def test_before_the_first_configuration(opened: Opener, row: ProxyRoute) -> None:
    """Every key gets a 503, except at the liveness route."""
    wire = opened(**EVERYTHING_ON, document=None)
    for key in (None, KEY, TOKEN, "wrong"):
        assert asked(wire, row, key).status == (opens(row, key) if row.always and row.handler != "ready" else 503)
