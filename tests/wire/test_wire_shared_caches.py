"""No shared cache gives one caller's answer to another: an answer names its inputs in `Vary`, or it is not shared."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.context import Context
from support.wirekit import KEY, TOKEN, Answer, Opener, asking

HERE = "192.0.2.1"
BY_ADDRESS: dict[str, Any] = {"version": 2, "features": [asking("remoteAddress", "IN", HERE)]}
BY_USER: dict[str, Any] = {"version": 2, "features": [asking("userId", "IN", "7")]}
BY_STICKINESS: dict[str, Any] = {
    "version": 2,
    "features": [
        {
            "name": "drawn",
            "enabled": True,
            "strategies": [{"name": "default"}],
            "variants": [{"name": name, "weight": 500} for name in ("a", "b")],
        }
    ],
}
HEADERS = (
    "accept", "accept-language", "cookie", "forwarded", "host", "origin", "range", "referer", "te", "true-client-ip",
    "user-agent", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-host",
    "x-http-method-override", "x-original-url", "x-real-ip", "x-rewrite-url", "cf-connecting-ip", "access-control-request-headers",
    "if-modified-since", "if-none-match", "accept-encoding", "authorization", "unleash-appname", "unleash-instanceid",
)  # fmt: skip
"""Headers that clients and proxies send, and headers that have been used to poison caches."""
VALUES = (
    "192.0.2.1",
    "https://a.example",
    "/nowhere",
    "gzip;q=1, identity;q=0",
    "POST",
    "other-key",
    "*",
    "bytes=0-1",
    "x",
)


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


@pytest.mark.parametrize("key", [None, "wrong", TOKEN])
def test_refusals_are_kept_by_nobody(opened: Opener, key: str | None) -> None:
    """No cache stores a refusal, so one caller's wrong key, long query or odd path is not answered to others."""
    wire = opened(query_limit=50)
    for target in ("/proxy", "/proxy/client/features", "/nowhere", "/proxy?" + "x" * 60):
        answer = wire.get(target, key=key)
        assert not shared(answer)
        assert answer.status == 200 or answer.header("cache-control") == "no-store"


def test_a_body_behind_a_get_changes_nothing(opened: Opener) -> None:
    """The body of a GET is in no cache key, and the proxy ignores it."""
    wire = opened(document=BY_USER)
    plain = wire.get("/proxy?sessionId=1")
    assert wire.ask("GET", "/proxy?sessionId=1", body=b'{"context":{"userId":"7"}}') == plain
