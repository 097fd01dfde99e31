"""Entity tags, 304 and compression (behaviour: Caching; Compression)."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from support.wirekit import TOKEN, Answer, Opener, Wire, asking

MANY: dict[str, Any] = {
    "version": 2,
    "features": [
        {"name": f"feature-{number}", "enabled": True, "strategies": [{"name": "default"}]} for number in range(40)
    ],
}
TARGETS = ("/proxy", "/proxy/all", "/proxy/health", "/docs/openapi.json", "/docs/openapi", "/proxy/client/features")


def tag_of(answer: Answer) -> str:
    """Return the entity tag of an answer."""
    tag = answer.header("etag")
    assert tag is not None
    return tag


def everything(opened: Opener, **more: Any) -> Wire:
    """Return a proxy with all its routes."""
    return opened(enable_oas=True, enable_all_endpoint=True, client_keys=("client-key", TOKEN), **more)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_not_modified(opened: Opener, target: str, method: str) -> None:
    """A 304 has no body, and has the tag and every header that a cache needs to refresh its copy."""
    wire = everything(opened)
    first = wire.get(f"{target}?sessionId=1", key=TOKEN)
    tag = tag_of(first)
    assert tag.startswith('W/"')
    assert tag.endswith('"')
    assert len(tag) >= 5
    answer = wire.ask(method, f"{target}?sessionId=1", {"if-none-match": tag}, key=TOKEN)
    assert (answer.status, answer.body) == (304, b"")
    for name in ("etag", "cache-control", "vary", "access-control-allow-origin", "access-control-expose-headers"):
        assert answer.header(name) == first.header(name)
    assert answer.header("content-type") is None
    assert answer.header("content-length") is None
    assert answer.header("content-encoding") is None


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("{tag}", 304),
        ("{strong}", 304),
        ("*", 304),
        (" * ", 304),
        ('"a", {tag}', 304),
        ('W/"b" , {strong},"c"', 304),
        ('"a,b", {tag}', 304),
        ('"a"', 200),
        ("", 200),
        ("{bare}", 200),
        ('"*"', 200),
        ('W/"{bare}x"', 200),
        ('"x{bare}"', 200),
        ("w{bare}", 200),
    ],
)
def test_if_none_match(opened: Opener, condition: str, status: int) -> None:
    """Lists and `*` match, with weak comparison; anything else does not."""
    wire = opened()
    tag = tag_of(wire.get("/proxy"))
    given = condition.format(tag=tag, strong=tag.removeprefix("W/"), bare=tag.removeprefix("W/").strip('"'))
    assert wire.get("/proxy", {"if-none-match": given}).status == status


def test_if_none_match_in_several_lines(opened: Opener) -> None:
    """Two If-None-Match headers are one list."""
    wire = opened()
    tag = tag_of(wire.get("/proxy"))
    headers = [("if-none-match", '"a"'), ("if-none-match", tag)]
    assert wire.ask("GET", "/proxy", headers).status == 304


def test_post_is_never_not_modified(opened: Opener) -> None:
    """A POST has a tag, but If-None-Match is for GET and HEAD."""
    wire = opened()
    for body in ({}, {"toggles": ["on"]}, b""):
        tag = tag_of(wire.post("/proxy", body))
        assert wire.post("/proxy", body, {"if-none-match": tag}).status == 200


def test_errors_have_no_tag(opened: Opener) -> None:
    """No cache stores an error, and `*` does not match it."""
    answer = opened().get("/nowhere", {"if-none-match": "*"})
    assert (answer.status, answer.header("etag")) == (404, None)


def test_the_same_answer_has_the_same_tag_and_another_another(opened: Opener) -> None:
    """The tag is equal over replicas and for callers who differ only in unread fields; every other difference changes it."""
    first, second = opened(), opened()
    assert tag_of(first.get("/proxy?userId=1")) == tag_of(second.get("/proxy?userId=2"))
    assert tag_of(first.get("/proxy")) == tag_of(first.post("/proxy", {}))
    tags = {tag_of(first.post("/proxy", {"toggles": [f"t{number}"]})) for number in range(200)}
    assert len(tags) == 200


def test_a_tag_is_that_of_what_is_read(opened: Opener) -> None:
    """The tag covers the fields that a toggle reads and no others; with a random draw it is the digest of the answer."""
    wire = opened(document={"version": 2, "features": [asking("region", "IN", "eu")]})
    base = tag_of(wire.get("/proxy?region=us&userId=1"))
    assert tag_of(wire.get("/proxy?region=us&userId=2")) == base
    assert tag_of(wire.get("/proxy?region=eu&userId=1")) != base
    draw = {"name": "gradualRolloutRandom", "parameters": {"percentage": "50"}}
    wire = opened(document={"version": 2, "features": [{"name": "drawn", "enabled": True, "strategies": [draw]}]})
    answers = [wire.get("/proxy") for _ in range(40)]
    assert len({(tag_of(answer), answer.body) for answer in answers}) == 2


def test_kept_answers_are_counted(opened: Opener) -> None:
    """The metrics tell how often the cache had an answer, and how much it holds."""
    wire = opened()
    for _ in range(5):
        wire.get("/proxy")
    metrics = wire.get("/proxy/internal-backstage/prometheus").body.decode()
    assert "flagsvc_answer_cache_hits_total 3.0" in metrics
    assert "flagsvc_answer_cache_misses_total 2.0" in metrics
    assert "flagsvc_answer_cache_bytes 0.0" not in metrics


def test_a_change_is_seen(opened: Opener) -> None:
    """After a new configuration the answer is no 304."""
    wire = opened()
    tag = tag_of(wire.get("/proxy"))
    wire.serve(MANY)
    assert wire.get("/proxy", {"if-none-match": tag}).status == 200


@pytest.mark.parametrize(
    ("accept", "packed"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZIP", True),
        ("gzip, deflate, br, zstd", True),
        ("deflate, gzip;q=1.0", True),
        ("x-gzip", True),
        ("*", True),
        ("br, *;q=0.1", True),
        ("gzip;q=0.001", True),
        ("gzip; q=0.5, identity; q=0.1", True),
        ("identity;q=0, *", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("br", False),
        ("deflate", False),
        ("identity", False),
        ("identity;q=0.5, gzip;q=0.2", False),
        ("gzip;q=x", False),
        ("gzip;q=", False),
        ("gzip;q=2", False),
        ("gzip;q=-1", False),
        ("gzipped", False),
        (";;,,=", False),
        ("*;q=0", False),
    ],
)
def test_compression_is_agreed(opened: Opener, accept: str | None, packed: bool) -> None:
    """The answer uses gzip if the caller accepts it and does not prefer the plain form."""
    wire = opened(document=MANY)
    headers = {} if accept is None else {"accept-encoding": accept}
    answer = wire.get("/proxy", headers)
    assert answer.header("content-encoding") == ("gzip" if packed else None)
    assert "Accept-Encoding" in (answer.header("vary") or "")
    body = gzip.decompress(answer.body) if packed else answer.body
    assert body == wire.get("/proxy").body
    assert answer.header("content-length") == str(len(answer.body))


def test_a_compressed_answer_has_the_same_tag(opened: Opener) -> None:
    """The tag is weak: it identifies the answer, not its bytes."""
    wire = opened(document=MANY)
    packed = wire.get("/proxy", {"accept-encoding": "gzip"})
    assert tag_of(packed) == tag_of(wire.get("/proxy"))
    both = {"accept-encoding": "gzip", "if-none-match": tag_of(packed)}
    assert wire.get("/proxy", both).status == 304


def test_head_of_a_compressed_answer(opened: Opener) -> None:
    """HEAD has the headers that GET would have."""
    wire = opened(document=MANY)
    got, head = (wire.ask(method, "/proxy", {"accept-encoding": "gzip"}) for method in ("GET", "HEAD"))
    assert head.fields == got.fields
    assert head.body == b""


def test_small_answers_stay_plain(opened: Opener) -> None:
    """Below about a kilobyte the answer is not compressed, unless the caller refuses the plain form."""
    wire = opened()
    assert wire.get("/proxy", {"accept-encoding": "gzip"}).header("content-encoding") is None
    assert wire.get("/proxy/health", {"accept-encoding": "gzip"}).body == b"ok"
    forced = wire.get("/proxy/health", {"accept-encoding": "gzip, identity;q=0"})
    assert forced.header("content-encoding") == "gzip"
    assert gzip.decompress(forced.body) == b"ok"


def test_post_is_compressed_too(opened: Opener) -> None:
    """The same holds for POST."""
    answer = opened(document=MANY).post("/proxy", {}, {"accept-encoding": "gzip"})
    assert answer.header("content-encoding") == "gzip"
    assert len(gzip.decompress(answer.body)) > 1024


def test_more_kinds_of_accept_encoding_than_are_remembered(opened: Opener) -> None:
    """The meaning of a header does not depend on the headers before it."""
    wire = opened(document=MANY)
    for number in range(300):
        wire.get("/proxy", {"accept-encoding": f"x{number}"})
    assert wire.get("/proxy", {"accept-encoding": "br, gzip"}).header("content-encoding") == "gzip"
