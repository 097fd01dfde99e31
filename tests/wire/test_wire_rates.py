"""Rate limits for keys and for addresses (options rateLimitKey, rateLimitAddress, rateLimitBurst)."""

from __future__ import annotations

from typing import Any

import pytest

from support.wirekit import KEY, TOKEN, Opener, Wire

BOTH: dict[str, Any] = {"rate_limit_key": 3, "rate_limit_address": 2}


def statuses(wire: Wire, times: int, target: str = "/proxy", **more: Any) -> list[int]:
    """Return the statuses of equal requests, one after the other."""
    return [wire.get(target, **more).status for _ in range(times)]


def test_without_a_limit_there_is_none(opened: Opener) -> None:
    """By default no request is a 429."""
    assert set(statuses(opened(), 300)) == {200}


def test_the_answer(opened: Opener) -> None:
    """A 429 says when to ask again, must not be cached, has CORS headers, and shows nothing of the key."""
    wire = opened(rate_limit_key=1)
    assert wire.get("/proxy").status == 200
    answer = wire.get("/proxy")
    assert (answer.status, answer.header("retry-after"), answer.header("cache-control")) == (429, "1", "no-store")
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.json() == {"error": "too many requests with this key"}
    assert wire.ask("HEAD", "/proxy").body == b""


def test_time_brings_new_requests(opened: Opener) -> None:
    """The bucket refills at the rate per second, up to the burst."""
    wire = opened(rate_limit_key=2, rate_limit_burst=3)
    assert statuses(wire, 5) == [200, 200, 200, 429, 429]
    wire.pass_s(0.5)
    assert statuses(wire, 2) == [200, 429]
    wire.pass_s(3600)
    assert statuses(wire, 4) == [200, 200, 200, 429]


def test_a_304_counts_as_well(opened: Opener) -> None:
    """A request that ends in a 304 counts like any other."""
    wire = opened(rate_limit_key=2)
    tag = wire.get("/proxy").header("etag") or ""
    assert wire.get("/proxy", {"if-none-match": tag}).status == 304
    assert wire.get("/proxy", {"if-none-match": tag}).status == 429


def test_keys_and_tokens_each_have_theirs(opened: Opener) -> None:
    """The limit of one key does not affect another; all routes that take a key count."""
    wire = opened(client_keys=(KEY, "other"), rate_limit_key=2)
    assert statuses(wire, 3) == [200, 200, 429]
    assert statuses(wire, 3, key="other") == [200, 200, 429]
    assert statuses(wire, 3, "/proxy/client/features", key=TOKEN) == [200, 200, 429]
    assert wire.post("/proxy/client/register", {}, key=TOKEN).status == 429


def test_addresses_each_have_theirs(opened: Opener) -> None:
    """IPv6 counts by its first 64 bits. A wrong key counts too, so that guessing keys is no faster than other requests."""
    wire = opened(rate_limit_address=2)
    assert [*statuses(wire, 1), *statuses(wire, 1, key="wrong"), *statuses(wire, 2, key="wrong")] == [
        200,
        401,
        429,
        429,
    ]
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
    assert [
        wire.get("/proxy", {"x-forwarded-for": f"192.0.2.{number}"}, peer="198.51.100.7").status for number in range(2)
    ] == [200, 429]


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
