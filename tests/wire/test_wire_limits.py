"""Limits on the size of a request (behaviour: Size limits)."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from support.wirekit import GONE, Opener

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


def test_an_announced_body_is_refused_unread(opened: Opener) -> None:
    """The proxy refuses a Content-Length over the limit without reading the body."""
    wire = opened()
    answer = wire.post("/proxy", body_of(100 * KB + 1))
    assert (answer.status, answer.header("cache-control")) == (413, "no-store")
    assert answer.json() == {"error": "the body is larger than 102400 bytes"}
    assert wire.last is not None
    assert wire.last.taken == 0


def test_a_chunked_body_is_read_no_further_than_the_limit(opened: Opener) -> None:
    """Of 100 chunks of 10 kB it reads eleven."""
    wire = opened()
    assert wire.post("/proxy", b"", chunks=[b"x" * 10 * KB] * 100).status == 413
    assert wire.last is not None
    assert wire.last.taken == 11


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


def test_metrics_have_a_limit_of_their_own(opened: Opener) -> None:
    """Their default limit is 1 MB."""
    report = {
        "appName": "a",
        "instanceId": "i",
        "bucket": {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {}},
    }
    large = json.dumps({**report, "x": "a" * 1_000_000}).encode()
    assert opened().post("/proxy/client/metrics", large).status == 200
    assert opened().post("/proxy/client/metrics", large + b" " * 100_000).status == 413
    assert opened(metrics_body_limit=1000).post("/proxy/client/metrics", large).status == 413
    assert opened().post("/proxy/client/register", large).status == 413


@pytest.mark.parametrize("length", ["x", "-1", "1.5", "", "0x10", "1 2", "²"])
def test_a_length_that_is_none(opened: Opener, length: str) -> None:
    """An invalid length is a 400, and nothing is read."""
    wire = opened()
    assert wire.ask("POST", "/proxy", {"content-length": length}, body=b"{}").status == 400


def test_query_limit(opened: Opener) -> None:
    """16 kB are read, one byte more is 414, whatever the path and the key; an option sets it."""
    wire = opened(context_value_limit=20 * KB)
    assert wire.get("/proxy?a=" + "x" * (16 * KB - 2)).status == 200
    long = "a=" + "x" * (16 * KB - 1)
    for target, key in (("/proxy", "client-key"), ("/proxy", None), ("/nowhere", None), ("/proxy/health", None)):
        answer = wire.get(f"{target}?{long}", key=key)
        assert (answer.status, answer.header("cache-control")) == (414, "no-store")
        assert answer.header("access-control-allow-origin") == "*"
    assert opened(query_limit=10).get("/proxy?userId=7890").status == 414


def test_header_limit(opened: Opener) -> None:
    """16 kB of headers are read, more is 431; an option sets it."""
    wire = opened()
    assert wire.get("/proxy", {"x-large": "x" * 15 * KB}).status == 200
    for headers in ({"x-large": "x" * 17 * KB}, {f"x-{number}": "x" * 1000 for number in range(18)}):
        answer = wire.get("/proxy", headers)
        assert (answer.status, answer.header("cache-control")) == (431, "no-store")
        assert answer.json()["error"]
    assert opened(header_limit=100).get("/proxy", {"x-large": "x" * 100}).status == 431


def test_a_caller_that_leaves_gets_nothing(opened: Opener) -> None:
    """A caller that disconnects in the middle of its body is no error."""
    wire = opened()
    assert wire.ask("POST", "/proxy", {"transfer-encoding": "chunked"}, gone=True) is GONE
    assert wire.log.lines == []


def test_many_repeated_parameters_cost_little(opened: Opener) -> None:
    """A query full of the same parameter is one property."""
    answer = opened().get("/proxy?" + "&".join(["a=1"] * 2000))
    assert answer.status == 200
