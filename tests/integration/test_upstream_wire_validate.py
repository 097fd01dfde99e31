"""The question about tokens of callers: where it goes, what it holds, and which answers count."""

from __future__ import annotations

import json

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import SDK, Upstream
from support.aio import asynchronous
from support.loopback import reply, then_close, then_reset
from support.upstream_session import DOCUMENT, LIMITS, TOKEN, session

KNOWN = [{"token": "a", "type": "client", "projects": ["*"], "environment": "development"}]
ANSWER = json.dumps({"tokens": KNOWN}).encode()
TOKENS = ["a", "*:development.hidden-b"]


async def fault(upstream: Upstream) -> UpstreamError:
    """Return the error of a question; it holds no token, not even in the frames that it passed."""
    with pytest.raises(UpstreamError) as caught:
        await upstream.validate(TOKENS)
    error = caught.value
    assert "hidden" not in f"{error} {error!r}" and error.__cause__ is error.__context__ is None
    frames = []
    place = error.__traceback__
    while place is not None:
        if "flagsvc" in place.tb_frame.f_code.co_filename:
            frames.append(str(place.tb_frame.f_locals))
        place = place.tb_next
    assert frames and not [each for each in frames if "hidden" in each]
    return error


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/api", "/edge/validate"),
        ("/api/", "/edge/validate"),
        ("", "/edge/validate"),
        ("/proxy", "/edge/validate"),
        ("/base/api", "/base/edge/validate"),
        ("/base", "/base/edge/validate"),
        ("/proxy/api", "/proxy/edge/validate"),
        ("/api/api", "/api/edge/validate"),
        ("/some-api", "/some-api/edge/validate"),
    ],
)
@asynchronous
async def test_where_it_goes(path: str, asked: str) -> None:
    """It goes beside the API, which may be given with its path or without it."""
    async with session(path) as (server, upstream):
        server.script(reply(200, ANSWER))
        assert await upstream.validate(TOKENS) == KNOWN
    assert [(seen.method, seen.target) for seen in server.requests] == [("POST", asked)]


@asynchronous
async def test_where_it_goes_when_the_api_is_known() -> None:
    """An address without `/api` is completed for other requests, not for this one."""
    async with session("/base") as (server, upstream):
        server.script(reply(404), reply(200, DOCUMENT), reply(200, ANSWER))
        await upstream.get_features(None)
        assert await upstream.validate(TOKENS) == KNOWN
    assert server.requests[-1].target == "/base/edge/validate"


@asynchronous
async def test_what_it_holds() -> None:
    """The tokens in their order, who asks, and no token of the proxy."""
    async with session(headers=(("x-gateway", "pass"),)) as (server, upstream):
        server.script(reply(200, ANSWER))
        await upstream.validate(TOKENS)
    [seen] = server.requests
    assert json.loads(seen.body) == {"tokens": TOKENS}
    assert "authorization" not in seen.headers and TOKEN not in str(seen.headers)
    assert (seen.headers["content-type"], seen.headers["accept"]) == ("application/json", "application/json")
    assert (seen.headers["x-gateway"], seen.headers["unleash-sdk"]) == ("pass", SDK)


@asynchronous
async def test_without_a_token_of_the_proxy() -> None:
    """Where a gateway authenticates, its header is sent here as well."""
    async with session(token="", headers=(("authorization", "Basic gateway"),)) as (server, upstream):
        server.script(reply(200, ANSWER))
        await upstream.validate(TOKENS)
    assert server.requests[0].headers["authorization"] == "Basic gateway"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(401, ANSWER), "unauthorized"),
        (reply(404, ANSWER), "not-found"),
        (reply(302, location="/elsewhere"), "unexpected"),
        (reply(204), "unexpected"),
        (reply(200, ANSWER, content_type="text/html"), "document"),
        (reply(200), "unexpected"),
        (reply(200, b"{"), "unexpected"),
        (reply(200, b"[]"), "unexpected"),
        (reply(200, b'{"tokens":{}}'), "unexpected"),
        (reply(200, b"[" * 100_000), "unexpected"),
        (reply(200, b"\xff"), "unexpected"),
        (reply(200, b" " * (LIMITS.max_bytes + 1)), "document"),
        (then_close(reply(200, ANSWER)[:-3]), "document"),
        (then_reset(), "network"),
    ],
)
@asynchronous
async def test_what_is_no_answer(answer: bytes, kind: str) -> None:
    """Everything else than a list of entries is an error, which does not hold the tokens."""
    async with session() as (server, upstream):
        server.script(answer)
        assert (await fault(upstream)).kind == kind
    assert "/elsewhere" not in [seen.target for seen in server.requests]


@asynchronous
async def test_a_connection_that_is_closed_just_now() -> None:
    """The question changes nothing upstream, so it is sent again on a new connection; a report is not."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT), then_reset(), reply(200, ANSWER), then_reset(), reply(202))
        await upstream.get_features(None)
        assert await upstream.validate(TOKENS) == KNOWN
        assert server.connections == 2
        with pytest.raises(UpstreamError):
            await upstream.send_metrics({})
