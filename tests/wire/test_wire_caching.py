"""Entity tags, 304 and compression (behaviour: Caching; Compression).

No shared cache gives one caller's answer to another: an answer names its inputs in `Vary`, or it is not shared.
No answer can be split: nothing that a caller sends adds a line to a head (behaviour: CORS; Evaluation endpoints).
"""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest

from flagsvc.engine.context import Context
from flagsvc.proxy.api.dialects import ROUTES
from support.frontkit import dial, serving
from support.scene import document as document_of
from support.scene import toggle
from support.wirekit import KEY, TOKEN, Answer, Opener, Wire, asking

MANY = document_of(*(toggle(f"feature-{number}") for number in range(40)))
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
    [("{tag}", 304), ("{strong}", 304), ("*", 304), ('W/"b" , {strong},"c"', 304), ("{bare}", 200), ('"x{bare}"', 200)],
)
def test_if_none_match(opened: Opener, condition: str, status: int) -> None:
    """Lists and `*` match, with weak comparison; anything else does not."""
    wire = opened()
    tag = tag_of(wire.get("/proxy"))
    given = condition.format(tag=tag, strong=tag.removeprefix("W/"), bare=tag.removeprefix("W/").strip('"'))
    assert wire.get("/proxy", {"if-none-match": given}).status == status


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


@pytest.mark.parametrize(
    ("accept", "packed"),
    [
        (None, False),
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("deflate, gzip;q=1.0", True),
        ("x-gzip", True),
        ("*", True),
        ("gzip;q=0.001", True),
        ("identity;q=0, *", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("br", False),
        ("gzip;q=x", False),
        ("gzip;q=2", False),
        ("gzipped", False),
        (";;,,=", False),
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


def test_a_compressed_answer(opened: Opener) -> None:
    """A compressed answer has the tag of the plain answer. The tag is weak: it identifies the answer, not its bytes.

    HEAD has the headers that GET would have.
    """
    wire = opened(document=MANY)
    packed = wire.get("/proxy", {"accept-encoding": "gzip"})
    assert tag_of(packed) == tag_of(wire.get("/proxy"))
    both = {"accept-encoding": "gzip", "if-none-match": tag_of(packed)}
    assert wire.get("/proxy", both).status == 304
    got, head = (wire.ask(method, "/proxy", {"accept-encoding": "gzip"}) for method in ("GET", "HEAD"))
    assert head.fields == got.fields
    assert head.body == b""


HERE = "192.0.2.1"
BY_ADDRESS = document_of(asking("remoteAddress", "IN", HERE))
BY_USER = document_of(asking("userId", "IN", "7"))
BY_STICKINESS = document_of(toggle("drawn", variants=[{"name": name, "weight": 500} for name in "ab"]))
HEADERS = (
    "accept", "accept-language", "cookie", "forwarded", "host", "origin", "range", "referer", "te", "true-client-ip",
    "user-agent", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-host",
    "x-http-method-override", "x-original-url", "x-real-ip", "x-rewrite-url", "cf-connecting-ip", "access-control-request-headers",
    "if-modified-since", "if-none-match", "accept-encoding", "authorization", "unleash-appname", "unleash-instanceid",
)  # fmt: skip
"""Headers that clients and proxies send, and headers that have been used to poison caches."""
VALUES = ("192.0.2.1", "https://a.example", "/nowhere", "gzip;q=1, identity;q=0", "POST", "other-key", "*", "bytes=0-1", "x")


def shared(answer: Answer) -> bool:
    """Return whether a shared cache may keep an answer for others."""
    control = answer.header("cache-control") or ""
    return answer.status == 200 and "no-store" not in control and "private" not in control and "no-cache" not in control


@pytest.mark.parametrize("origin", ["*", "https://a.example", ("https://a.example", "https://b.example")])
@pytest.mark.parametrize("trust", [False, True, ("loopback", "203.0.113.7")])
@pytest.mark.parametrize("document", [BY_ADDRESS, BY_USER], ids=["by address", "by user"])
def test_what_an_answer_hangs_on_is_told(
    opened: Opener, document: dict[str, Any], trust: bool | tuple[str, ...], origin: str | tuple[str, ...]
) -> None:
    """A header that changes a shareable answer is in `Vary`; the host is part of every cache key anyway."""
    wire = opened(document=document, trust_proxy=trust, cors_origin=origin, client_keys=(KEY, "other-key"))
    usual = wire.get("/proxy?sessionId=1")
    for name in HEADERS:
        for value in VALUES:
            given = [(name, value)] if name == "authorization" else [(name, value), ("authorization", KEY)]
            answer = wire.ask("GET", "/proxy?sessionId=1", given, key=None)
            for kept in (answer, usual):
                if answer != usual and shared(kept) and name != "host":
                    vary = {each.strip().lower() for each in (kept.header("vary") or "").split(",")}
                    assert name in vary or (name == "if-none-match" and answer.status == 304), (name, value)


@pytest.mark.parametrize(
    ("document", "trust", "kept"),
    [
        (BY_ADDRESS, False, "public, max-age=2"),
        (BY_ADDRESS, True, "private, max-age=2"),
        (BY_ADDRESS, ("loopback",), "private, max-age=2"),
        (BY_STICKINESS, True, "private, max-age=2"),
        (BY_USER, True, "public, max-age=2"),
        (BY_USER, (), "public, max-age=2"),
    ],
)
def test_answers_for_an_address_that_a_header_tells_are_private(
    opened: Opener, document: dict[str, Any], trust: bool | tuple[str, ...], kept: str
) -> None:
    """If the configuration reads the caller's address, and a header that the cache adds gives it, no answer is shared."""
    wire = opened(document=document, trust_proxy=trust)
    for _ in range(3):  # evaluated, kept, taken from what is kept
        assert wire.get("/proxy?sessionId=1").header("cache-control") == kept
    tag = wire.get("/proxy?userId=1&sessionId=1").header("etag") or ""
    answer = wire.get("/proxy?userId=1&sessionId=1", {"if-none-match": tag})
    assert (answer.status, answer.header("cache-control")) == (304, kept)


def test_a_new_configuration_decides_anew(opened: Opener) -> None:
    """After a new configuration an answer can become private, or shareable again."""
    wire = opened(document=BY_USER, trust_proxy=True)
    found = []
    for document in (BY_USER, BY_ADDRESS, BY_USER):
        wire.serve(document)
        found.append((wire.get("/proxy").header("cache-control") or "").split(",")[0])
    assert found == ["public", "private", "public"]


def test_an_enricher_may_read_the_address(opened: Opener) -> None:
    """An enricher may use the address. With one, no answer is shared where a header gives the address."""

    async def enricher(context: Context) -> Context:
        return context

    for trust, kept in ((True, "private, max-age=2"), (False, "public, max-age=2")):
        wire = opened(document=BY_USER, trust_proxy=trust, enrichers=[enricher])
        assert wire.get("/proxy").header("cache-control") == kept


MARK = "x-evil"
SPLITS = tuple(f"a{end}{MARK}: 1" for end in ("\r\n", "\n", "\r", "\r\n\r\n", "\0", "\x0b", "\x0c", "\x85", "%0d%0a", "\\r\\n"))
REFLECTED = ("access-control-request-headers", "access-control-request-method", "origin", "accept-encoding", "if-none-match",
             "host", "content-type", "x-forwarded-for", "authorization")  # fmt: skip
"""Request headers that affect the answer's head, or look as if they did."""
PATHS = sorted({row.path for row in ROUTES if row.media != "text/event-stream"} | {f"/{MARK}", "/%0d%0ax-evil:%201"})


@pytest.mark.parametrize("header", REFLECTED)
def test_a_server_that_lets_line_ends_through(over_asgi: Opener, header: str) -> None:
    """Under a server that does not filter them, control characters are not copied into a header."""
    for origin in ("*", ("https://a.example", "https://b.example")):
        wire = over_asgi(enable_oas=True, enable_all_endpoint=True, cors_origin=origin)
        for split in SPLITS:
            for method in ("OPTIONS", "GET", "POST", "DELETE"):
                answer = wire.ask(method, "/proxy", {header: split}, key=None if header == "authorization" else KEY)
                for name, value in answer.fields:
                    assert name != MARK and not re.search(r"[\x00-\x1f\x7f]", value), (method, split, name, value)


@pytest.mark.parametrize("header", REFLECTED)
async def test_line_ends_on_the_wire(header: str) -> None:
    """Bytes that a parser might take for a line end add no line to the answer's head."""
    given = serving(enable_oas=True)
    for split in SPLITS:
        for method in ("OPTIONS", "GET"):
            line = dial(given)
            line.send(f"{method} /proxy HTTP/1.1\r\nHost: proxy\r\n{header}: {split}\r\n\r\n".encode("latin-1"))
            head = bytes(line.transport.data).partition(b"\r\n\r\n")[0]
            assert head and not re.search(rb"[\r\n]x-evil", head, re.IGNORECASE), (split, head)
            assert not re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]", head)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_or_query_is_in_no_head(opened: Opener, path: str) -> None:
    """No head holds the path or query, escaped or raw."""
    wire = opened(enable_oas=True, enable_all_endpoint=True)
    for target in (path, f"{path}/", f"{path}?{MARK}=%0d%0a{MARK}:%201", f"/%0d%0a{MARK}:1{path}"):
        answer = wire.get(target)
        assert not any(MARK in name + value for name, value in answer.fields), target
