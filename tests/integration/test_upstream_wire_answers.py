"""The upstream session over real sockets: bad answers and redirects."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Limits, Outbound, Upstream
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import asynchronous
from support.loopback import drip, loopback, reply, silence, then_close, then_reset
from support.upstream_session import DOCUMENT, TOKEN, fault, options, session

# ---- what bad answers are

FAULTS = [
    (reply(401), "unauthorized", 401, None),
    (reply(403), "unauthorized", 403, None),
    (reply(404), "not-found", 404, None),
    (reply(429, retry_after="17"), "throttled", 429, 17.0),
    (reply(500), "server", 500, None),
    (reply(503, retry_after="3"), "server", 503, 3.0),
    (reply(418), "unexpected", 418, None),
    (reply(204), "unexpected", 204, None),
    (reply(200, b"<!doctype html>", content_type="text/html; charset=utf-8"), "document", 200, None),
    (then_close(reply(200, DOCUMENT, content_length="100")), "document", None, None),
    (
        then_close(reply(200, b"5\r\nabcde\r\n", content_length="-", transfer_encoding="chunked")),
        "document",
        None,
        None,
    ),
    (reply(200, b"no gzip", content_encoding="gzip"), "document", None, None),
    (reply(200, gzip.compress(DOCUMENT)[:-3], content_encoding="gzip"), "document", None, None),
    (reply(200, DOCUMENT, content_encoding="br"), "document", None, None),
    (reply(200, b"x" * 1_000_001), "document", None, None),
    (reply(200, gzip.compress(bytes(50_000_000)), content_encoding="gzip"), "document", None, None),
    (then_reset(reply(200, DOCUMENT, content_length="100")), "network", None, None),
    (then_reset(), "network", None, None),
    (then_close(b""), "network", None, None),
    (then_close(b"SSH-2.0-something\r\n"), "network", None, None),
]


@pytest.mark.parametrize(("answer", "kind", "status", "wait"), FAULTS)
@asynchronous
async def test_every_bad_answer_has_its_kind(answer: Any, kind: str, status: int | None, wait: float | None) -> None:
    """Each is an UpstreamError of the right kind, with its status and Retry-After. The session continues."""
    async with session() as (server, upstream):
        server.script(answer, reply(200, DOCUMENT))
        error = await fault(upstream)
        assert (error.kind, error.status, error.retry_after) == (kind, status, wait)
        assert (await upstream.get_features(None)).body == DOCUMENT


@asynchronous
async def test_retry_after_may_be_a_date() -> None:
    """It counts from the clock's now."""
    async with session() as (server, upstream):
        server.script(reply(429, retry_after="Sun, 15 Jun 2025 15:07:20 GMT"))
        assert (await fault(upstream)).retry_after == 40.0


@asynchronous
async def test_retry_after_has_a_limit() -> None:
    """Any requested wait is limited to five minutes, or to the option."""
    async with session() as (server, upstream):
        for wish in ("3600", "1e300", "Sun, 15 Jun 2035 15:07:20 GMT"):
            server.script(reply(503, retry_after=wish))
            assert (await fault(upstream)).retry_after == 300.0
        server.script(reply(503, retry_after="299"))
        assert (await fault(upstream)).retry_after == 299.0
    async with session(retry_after_limit_s=0.5) as (server, upstream):
        server.script(reply(429, retry_after="3600"))
        with pytest.raises(UpstreamError) as caught:
            await upstream.send_metrics({})
        assert caught.value.retry_after == 0.5


@asynchronous
async def test_a_good_packed_document_is_unpacked() -> None:
    """The requests accept gzip."""
    async with session() as (server, upstream):
        server.script(reply(200, gzip.compress(DOCUMENT), content_encoding="gzip"))
        assert (await upstream.get_features(None)).body == DOCUMENT


@asynchronous
async def test_a_slow_drip_ends_at_the_time_limit() -> None:
    """Each byte comes in time, the whole does not: the exchange is given up after its total time."""
    limits = Limits(step_s=5.0, total_s=0.3)
    async with session(limits=limits) as (server, upstream):
        server.script(drip(reply(200, DOCUMENT), 0.05))
        error = await fault(upstream)
    assert error.kind == "network" and "0.3 s" in str(error)


@asynchronous
async def test_a_server_that_says_nothing_ends_at_the_step_limit() -> None:
    """No answer at all is a network error."""
    async with session(limits=Limits(step_s=0.2, total_s=5.0)) as (server, upstream):
        server.script(silence)
        error = await fault(upstream)
    assert error.kind == "network" and "no answer within the time limit" in str(error)


@asynchronous
async def test_a_post_is_taken_even_if_the_rest_of_its_answer_never_comes() -> None:
    """The status has said all there is to know."""
    async with session() as (server, upstream):
        server.script(then_close(reply(202, b"half", content_length="100")))
        await upstream.send_metrics({})
        server.script(reply(202, b"x" * 200_000))
        await upstream.send_metrics({})


@asynchronous
async def test_nobody_listening_is_a_network_error() -> None:
    """The message names the address."""
    async with loopback() as server:
        url = server.url
    upstream = Upstream(options(url), clock=FakeClock(), log=RecordingLog())
    error = await fault(upstream)
    assert error.kind == "network" and f"`{url}`" in str(error)
    await upstream.aclose()


@asynchronous
@pytest.mark.parametrize("host", ["xn--", "[v1.a]", "\u00ad", "a..b", "a" * 64, "h/\udcff"])
async def test_a_host_that_is_none_is_a_network_error(host: str) -> None:
    """An invalid host is an error like any other: the loop continues and logs it once."""
    upstream = Upstream(options(f"http://{host}/api"), clock=FakeClock(), log=RecordingLog())
    assert (await fault(upstream)).kind == "network"
    await upstream.aclose()


@asynchronous
@pytest.mark.parametrize("host", ["xn--", "\u00ad", "a..b", "proxy:99999"])
async def test_an_outbound_proxy_that_is_no_host_is_a_network_error(host: str) -> None:
    """The message names neither the proxy nor its password."""
    through = Outbound(http=f"http://user:hidden@{host}")
    upstream = Upstream(options("http://flags.invalid/api", outbound=through), clock=FakeClock(), log=RecordingLog())
    error = await fault(upstream)
    assert error.kind == "network" and host not in str(error)
    await upstream.aclose()


@asynchronous
async def test_a_refused_post_is_an_error() -> None:
    """Registration and metrics share the error map."""
    async with session() as (server, upstream):
        for answer, kind in (
            (reply(400), "unexpected"),
            (reply(307, location="/x"), "unexpected"),
            (reply(429), "throttled"),
        ):
            server.script(answer)
            with pytest.raises(UpstreamError) as caught:
                await upstream.register({})
            assert caught.value.kind == kind
    assert len(server.requests) == 3


# ---- redirects


@asynchronous
async def test_a_redirect_on_the_same_origin_is_followed_for_a_document() -> None:
    """Token and ETag go along, for it is the same server."""
    async with session() as (server, upstream):
        server.script(reply(307, location="/v2/features?x=1"), reply(200, DOCUMENT))
        assert (await upstream.get_features('"x"')).body == DOCUMENT
    assert server.requests[1].target == "/v2/features?x=1"
    assert server.requests[1].headers["authorization"] == TOKEN


@asynchronous
async def test_the_token_never_goes_to_another_origin() -> None:
    """A redirect elsewhere is an error, and the other server is not even asked."""
    async with loopback() as other, session() as (server, upstream):
        server.script(reply(302, location=f"{other.url}/api/client/features"))
        error = await fault(upstream)
    assert error.kind == "unexpected" and not other.requests


@asynchronous
async def test_a_circle_of_redirects_ends() -> None:
    """After five steps it is an error."""
    async with session() as (server, upstream):
        server.script(reply(302, location="/api/client/features"))
        assert (await fault(upstream)).status == 302
    assert len(server.requests) == 6
