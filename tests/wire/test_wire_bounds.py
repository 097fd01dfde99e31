"""Limits on the content of a context, a look-up and a body (decision 0020).

Limits on the size of a request (behaviour: Size limits).
Rate limits for keys and for addresses (options rateLimitKey, rateLimitAddress, rateLimitBurst).
"""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest

from support.wirekit import KEY, TOKEN, Answer, Opener, Wire

SMALL: dict[str, Any] = {"context_properties_limit": 3, "context_value_limit": 5, "toggle_limit": 2, "json_depth_limit": 8}
BODY_BYTES = 100_000
"""The largest number of names in a body."""


def reached(wire: Wire) -> dict[str, int]:
    """Return the limits that were reached, by their labels in the metrics."""
    page = wire.get("/proxy/internal-backstage/prometheus", key=None).body.decode().splitlines()
    lines = [line.partition("{")[2] for line in page if line.startswith("flagsvc_limits_reached_total{")]
    counts = {line.split('"')[1]: int(float(line.split()[1])) for line in lines}
    assert len(counts) > 10
    return {limit: count for limit, count in counts.items() if count}


def problem(answer: Answer) -> tuple[str, str]:
    """Return the pointer and the rule of a 400."""
    assert (answer.status, answer.header("cache-control")) == (400, "no-store")
    [only] = answer.json()["validation"]
    return only["instancePath"], only["message"]


@pytest.mark.parametrize(
    ("query", "pointer", "rule"),
    [
        ("a=1&b=2&c=3", None, None),
        ("a=1&properties[b]=2&c[]=3&a=4", None, None),
        ("a=1&b=2&c=3&properties[d]=4", "/query", "must NOT have more than 3 properties"),
        ("userId=%F0%9F%98%80bcde", None, None),
        ("userId=abcdef", "/query/userId", "must NOT have more than 5 characters"),
        ("remoteAddress=abcdef", "/query/remoteAddress", "must NOT have more than 5 characters"),
        ("sessionId=abcdef&environment=x", "/query/sessionId", "must NOT have more than 5 characters"),
        ("area=abcdef", "/query/area", "must NOT have more than 5 characters"),
        ("properties[a]=abcdef", "/query/a", "must NOT have more than 5 characters"),
        ("a=123&a=456", "/query/a", "must NOT have more than 5 characters"),
        ("abcdef=1", "/query", "must NOT have names of more than 5 characters"),
        (f"currentTime=2022{'+' * 96}", None, None),
        (f"currentTime=2022{'+' * 97}", "/query/currentTime", "must NOT have more than 100 characters"),
    ],
)
def test_a_context_in_a_query(opened: Opener, query: str, pointer: str | None, rule: str | None) -> None:
    """A context at the limit is answered; one more of anything is a 400 that names the limit."""
    for method in ("GET", "HEAD"):
        answer = opened(**SMALL).ask(method, f"/proxy?{query}")
        assert answer.status == (200 if rule is None else 400)
    if rule is not None:
        assert problem(opened(**SMALL).get(f"/proxy?{query}")) == (pointer, rule)


@pytest.mark.parametrize(
    ("context", "pointer", "rule"),
    [
        ({"a": 1, "properties": {"b": None, "c": True}}, None, None),
        ({"a": 1, "b": 2, "properties": {"c": 1, "d": 1}}, "/body/context/properties", "must NOT have more than 3 properties"),
        ({"userId": "abcde"}, None, None),
        ({"userId": "abcdef"}, "/body/context/userId", "must NOT have more than 5 characters"),
        ({"environment": 123456}, "/body/context/environment", "must NOT have more than 5 characters"),
        ({"properties": {"a": 1e20}}, "/body/context/properties/a", "must NOT have more than 5 characters"),
        ({"a": [1, 2, 3, 4]}, "/body/context/properties/a", "must NOT have more than 5 characters"),
        ({"a": {}}, "/body/context/properties/a", "must NOT have more than 5 characters"),
        ({"abcdef": 1}, "/body/context/properties", "must NOT have names of more than 5 characters"),
        ({"currentTime": "2022" + " " * 96}, None, None),
        ({"currentTime": "2022" + " " * 97}, "/body/context/currentTime", "must NOT have more than 100 characters"),
    ],
)
def test_a_context_in_a_body(opened: Opener, context: dict[str, Any], pointer: str | None, rule: str | None) -> None:
    """The same limits hold in a body, for each value as text."""
    answer = opened(**SMALL).post("/proxy", {"context": context})
    if rule is None:
        assert answer.status == 200
    else:
        assert problem(answer) == (pointer, rule)


def test_toggles_of_a_look_up(opened: Opener) -> None:
    """Two toggles are answered. Three are refused, and none of them is counted as used."""
    wire = opened(**SMALL)
    assert wire.post("/proxy", {"toggles": ["on", "on"]}).status == 200
    wire.counted()
    answer = wire.post("/proxy", {"toggles": ["on"] * 3})
    assert problem(answer) == ("/body/toggles", "must NOT have more than 2 items")
    assert wire.counted() == {}


@pytest.mark.parametrize("path", ["/proxy", "/proxy/client/metrics", "/proxy/client/register"])
@pytest.mark.parametrize("charset", ["utf-8", "utf-16"])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_of_a_body(opened: Opener, path: str, charset: str, opening: str, closing: str) -> None:
    """Eight levels are read; nine or more are a 400, in every charset, on every route with a body."""
    wire = opened(**SMALL)
    media = {"content-type": f"application/json; charset={charset}"}
    fit = (BODY_BYTES - 50) // (len(opening + closing) * (2 if charset == "utf-16" else 1))
    for levels in (8, 9, fit):
        inner = opening * (levels - 1) + "1" + closing * (levels - 1)
        body = f'{{"b": {inner}}}'.encode(charset)
        assert len(body) <= BODY_BYTES, "a body that is cut off is no JSON, however deep"
        answer = wire.ask("POST", path, media, body=body, key="client-key" if path == "/proxy" else TOKEN)
        if levels > 8:
            assert answer.json()["error"] == "the body is nested too deeply"
            assert problem(answer) == ("/body", "must NOT be nested in more than 8 levels")
        elif path == "/proxy":
            assert answer.status == 200
        else:
            assert problem(answer) == ("/body", "must have required property 'appName'"), "read, and no report"


def test_many_shallow_lists_are_not_deep(opened: Opener) -> None:
    """Only the nesting counts, not the number of lists and objects."""
    body = {"x": [[{}]] * 500, "context": {"a": [1]}}
    assert opened(**SMALL).post("/proxy", body).status == 200


def test_limits_are_counted(opened: Opener) -> None:
    """Each limit is counted under its own label, whatever the caller sent."""
    wire = opened(**SMALL, body_limit=1000, query_limit=100, header_limit=3000)
    wire.get("/proxy?a=1&b=2&c=3&d=4")
    wire.get("/proxy?userId=abcdef")
    wire.get("/proxy?" + "a" * 101)
    wire.get("/proxy", {"x": "y" * 3000})
    wire.post("/proxy", {"toggles": ["on"] * 3})
    wire.post("/proxy", {"x": [[[[[[[[[]]]]]]]]]})
    wire.post("/proxy", b" " * 1001)
    wire.post("/proxy", b"", chunks=[b" " * 1001])
    assert reached(wire) == {
        "context_properties": 1,
        "context_value": 1,
        "query": 1,
        "headers": 1,
        "toggles": 1,
        "json_depth": 1,
        "body": 2,
    }


KB = 1024


def body_of(size: int) -> bytes:
    """Return a JSON body of this many bytes."""
    return b'{"x":"' + b"a" * (size - 8) + b'"}'


def test_a_body_at_the_limit_and_one_byte_over(opened: Opener) -> None:
    """100 kB are read, one byte more is 413; an option sets it."""
    for limit, settings in ((100 * KB, {}), (500, {"body_limit": 500})):
        wire = opened(**settings)
        assert wire.post("/proxy", body_of(limit)).status == 200
        assert wire.post("/proxy", b"", chunks=[body_of(limit)]).status == 200
        assert wire.post("/proxy", body_of(limit + 1)).status == 413
        assert wire.post("/proxy", b"", chunks=[body_of(limit + 1)]).status == 413


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_body_that_grows(opened: Opener, pack: object) -> None:
    """The limit also holds after decompression: the proxy does not unpack 50 MB."""
    wire = opened()
    coding = {"content-encoding": "gzip" if pack is gzip.compress else "deflate"}
    packed = pack(body_of(100 * KB))  # type: ignore[operator]
    assert wire.post("/proxy", packed, coding).status == 200
    bomb = pack(b" " * 50_000_000)  # type: ignore[operator]
    assert len(bomb) < 100 * KB
    assert wire.post("/proxy", bomb, coding).status == 413


def test_query_limit(opened: Opener) -> None:
    """16 kB are read, one byte more is 414, also where there is no route; an option sets it."""
    wire = opened(context_value_limit=20 * KB)
    assert wire.get("/proxy?a=" + "x" * (16 * KB - 2)).status == 200
    for target in ("/proxy", "/nowhere"):
        answer = wire.get(f"{target}?a=" + "x" * (16 * KB - 1))
        assert (answer.status, answer.header("cache-control")) == (414, "no-store")
        assert answer.header("access-control-allow-origin") == "*"
    assert opened(query_limit=10).get("/proxy?userId=7890").status == 414


def test_a_body_over_the_limit_is_not_read(opened: Opener) -> None:
    """The proxy refuses a Content-Length over the limit without reading the body. Of 100 chunks of 10 kB it reads eleven."""
    wire = opened()
    answer = wire.post("/proxy", body_of(100 * KB + 1))
    assert (answer.status, answer.header("cache-control")) == (413, "no-store")
    assert answer.json() == {"error": "the body is larger than 102400 bytes"}
    assert wire.last is not None
    assert wire.last.taken == 0
    assert wire.post("/proxy", b"", chunks=[b"x" * 10 * KB] * 100).status == 413
    assert wire.last is not None
    assert wire.last.taken == 11


BOTH: dict[str, Any] = {"rate_limit_key": 3, "rate_limit_address": 2}


def statuses(wire: Wire, times: int, target: str = "/proxy", **more: Any) -> list[int]:
    """Return the statuses of equal requests, one after the other."""
    return [wire.get(target, **more).status for _ in range(times)]


def test_the_answer(opened: Opener) -> None:
    """A 429 says when to ask again, must not be cached, has CORS headers, and shows nothing of the key."""
    wire = opened(rate_limit_key=1)
    assert wire.get("/proxy").status == 200
    answer = wire.get("/proxy")
    assert (answer.status, answer.header("retry-after"), answer.header("cache-control")) == (429, "1", "no-store")
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.json() == {"error": "too many requests with this key"}
    assert wire.ask("HEAD", "/proxy").body == b""


def test_a_304_counts_as_well(opened: Opener) -> None:
    """A request that ends in a 304 counts like any other."""
    wire = opened(rate_limit_key=2)
    tag = wire.get("/proxy").header("etag") or ""
    assert wire.get("/proxy", {"if-none-match": tag}).status == 304
    assert wire.get("/proxy", {"if-none-match": tag}).status == 429


def test_addresses_each_have_theirs(opened: Opener) -> None:
    """IPv6 counts by its first 64 bits. A wrong key counts too, so that guessing keys is no faster than other requests."""
    wire = opened(rate_limit_address=2)
    assert [wire.get("/proxy", key=key).status for key in (KEY, "wrong", "wrong", KEY)] == [200, 401, 429, 429]
    assert statuses(wire, 1, peer="198.51.100.1") == [200]
    assert [wire.get("/proxy", peer=f"2001:db8::{number}").status for number in range(3)] == [200, 200, 429]
    assert statuses(wire, 1, peer="2001:db8:0:1::1") == [200]


def test_addresses_behind_a_proxy(opened: Opener) -> None:
    """With trustProxy the caller's address counts; forged entries in front of it do not."""
    wire = opened(rate_limit_address=1, trust_proxy=("loopback",))
    found = [
        wire.get("/proxy", {"x-forwarded-for": forwarded}, peer="127.0.0.1").status
        for forwarded in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "203.0.113.1, 192.0.2.2")
    ]
    assert found == [200, 200, 429, 429]
    untrusted = [wire.get("/proxy", {"x-forwarded-for": f"192.0.2.{number}"}, peer="198.51.100.7") for number in range(2)]
    assert [each.status for each in untrusted] == [200, 429]


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/proxy/health"),
        ("GET", "/proxy/live"),
        ("GET", "/proxy/internal-backstage/prometheus"),
        ("GET", "/docs/openapi.json"),
        ("OPTIONS", "/proxy"),
        ("GET", "/nowhere"),
    ],
)
def test_what_takes_no_key_is_not_limited(opened: Opener, method: str, target: str) -> None:
    """Probes and scrapes are always answered, and use up no tokens of the buckets."""
    wire = opened(rate_limit_address=1, rate_limit_key=1, enable_oas=True)
    assert len({wire.ask(method, target).status for _ in range(5)}) == 1
    assert wire.get("/proxy").status == 200
    assert wire.get("/proxy").status == 429
    assert wire.ask(method, target).status < 429


def test_the_order_of_checks(opened: Opener) -> None:
    """404 and 405 come first, then address, key, the key's rate and 501, then all checks of the body."""
    wire = opened(**BOTH, rate_limit_burst=1)
    assert wire.get("/proxy/all").status == 501
    assert wire.get("/proxy/all").status == 429
    assert wire.get("/proxy/all", peer="198.51.100.1").status == 429
    assert wire.get("/proxy/all", key="wrong", peer="198.51.100.2").status == 401
    assert wire.get("/nowhere").status == 404
    assert wire.ask("PUT", "/proxy").status == 405
    answer = wire.post("/proxy", b"", chunks=[b"x"] * 5)
    assert answer.status == 429


def test_what_is_turned_away_is_counted(opened: Opener) -> None:
    """A refusal is counted by its limit, and like any answer by route and status."""
    wire = opened(**BOTH)
    statuses(wire, 2)
    statuses(wire, 2, peer="198.51.100.1")
    statuses(wire, 1)
    page = wire.get("/proxy/internal-backstage/prometheus", key=None).body.decode()
    assert 'flagsvc_limits_reached_total{limit="key_rate"} 1.0' in page
    assert 'flagsvc_limits_reached_total{limit="address_rate"} 1.0' in page
    assert "client-key" not in page and "198.51.100.1" not in page
