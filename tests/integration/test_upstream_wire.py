"""The upstream session over real sockets: its requests, and how it finds the API.

The upstream session over real sockets: bad answers and redirects.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any, NoReturn

import pytest

from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.proxy import upstream as session_module
from flagsvc.proxy.upstream import SDK, SPEC_VERSION, Fetched, Identity, Limits, Outbound, Upstream
from flagsvc.testing import FakeClock, RecordingLog
from support.loopback import drip, loopback, reply, silence, then_close, then_reset
from support.upstream_session import DOCUMENT, TOKEN, fault, options, session

# ---- what is sent


async def test_the_document_is_asked_for_with_filters_and_identity() -> None:
    """The request is the reference's: path, filters in order with repeated tags, and headers that name us."""
    changes: dict[str, Any] = {"project": "shop", "name_prefix": "a b&", "tags": (("team", "x:y"), ("ü", "1"))}
    async with session(refresh_interval=1234, **changes) as (server, upstream):
        server.script(reply(200, DOCUMENT, etag='"one"', content_type="application/json"))
        assert await upstream.get_features(None) == Fetched(DOCUMENT, '"one"')
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/api/client/features")
    assert request.query == [("project", "shop"), ("namePrefix", "a b&"), ("tag", "team:x:y"), ("tag", "ü:1")]
    expected = {
        "authorization": TOKEN,
        "unleash-appname": "some-app",
        "unleash-instanceid": "some-instance",
        "unleash-connection-id": "some-connection",
        "unleash-interval": "1234",
        "unleash-sdk": SDK,
        "unleash-client-spec": SPEC_VERSION,
        "accept": "application/json",
        "accept-encoding": "gzip",
        "user-agent": SDK.replace(":", "/"),
    }
    assert {name: request.headers.get(name) for name in expected} == expected
    assert set(request.headers) == {*expected, "host"}


async def test_an_etag_is_sent_and_a_304_is_not_modified() -> None:
    """The ETag goes out as it came in."""
    async with session() as (server, upstream):
        server.script(reply(304, etag='W/"one"'))
        assert await upstream.get_features('W/"one"') == Fetched(None, 'W/"one"')
    assert server.requests[0].headers["if-none-match"] == 'W/"one"'


async def test_an_unrequested_304_is_an_error() -> None:
    """Without If-None-Match, a 304 refers to no document."""
    async with session() as (server, upstream):
        server.script(reply(304))
        assert (await fault(upstream)).kind == "unexpected"


async def test_posts_carry_json_and_the_metrics_interval() -> None:
    """Registration and metrics go to their addresses; any 2xx means taken."""
    async with session(metrics_interval=777) as (server, upstream):
        server.script(reply(202), reply(200, b"OK"))
        await upstream.register({"appName": "ü"})
        await upstream.send_metrics({"bucket": {}, "odd": "\ud800"})
    assert [(seen.method, seen.path) for seen in server.requests] == [
        ("POST", "/api/client/register"),
        ("POST", "/api/client/metrics"),
    ]
    assert [json.loads(seen.body) for seen in server.requests] == [{"appName": "ü"}, {"bucket": {}, "odd": "?"}]
    for seen in server.requests:
        assert (seen.headers["content-type"], seen.headers["unleash-interval"]) == ("application/json", "777")
        assert seen.headers["authorization"] == TOKEN


async def test_one_connection_serves_many_requests() -> None:
    """Polls and posts share a kept connection, 304s and small answers to posts included."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT), reply(304), reply(202, b"taken"), reply(304))
        await upstream.get_features(None)
        await upstream.get_features('"x"')
        await upstream.send_metrics({})
        await upstream.get_features('"x"')
    assert (len(server.requests), server.connections) == (4, 1)


async def test_a_transport_that_could_not_be_made_is_made_again() -> None:
    """After any failure, a later request may succeed. Closing in between is not an error."""
    with pytest.MonkeyPatch.context() as patch:
        async with session() as (server, upstream):
            server.script(reply(200, DOCUMENT))
            patch.setattr(session_module, "open_transport", no_memory)
            with pytest.raises(OSError, match="no memory"):
                await upstream.get_features(None)
            patch.undo()
            assert (await upstream.get_features(None)).body == DOCUMENT
        patch.setattr(session_module, "open_transport", no_memory)
        async with session() as (_, upstream):
            with pytest.raises(OSError, match="no memory"):
                await upstream.get_features(None)


def no_memory(*_: object) -> NoReturn:
    """Prevent that a transport is made."""
    raise OSError("no memory")


async def test_a_transport_whose_making_was_cancelled_is_made_again() -> None:
    """An event loop that ends cancels every task; the last metrics are sent after that."""
    async with session() as (server, upstream):
        server.script(reply(202))
        before = asyncio.all_tasks()
        first = asyncio.create_task(upstream.send_metrics({}))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - before:
            task.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        await upstream.send_metrics({})
    assert len(server.requests) == 1


async def test_requests_at_the_same_time_open_one_transport() -> None:
    """The first requests of a poller and a reporter may coincide."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT))
        await asyncio.gather(*(upstream.get_features(None) for _ in range(4)))
    assert len(server.requests) == 4


async def test_a_kept_connection_that_was_closed_meanwhile_costs_nothing() -> None:
    """A server that closes an idle connection just when it is used again is asked once more, at once, for a document."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT), then_reset(), reply(200, DOCUMENT))
        await upstream.get_features(None)
        assert (await upstream.get_features(None)).body == DOCUMENT
        server.script(then_reset())
        assert (await fault(upstream)).kind == "network"


async def test_a_post_is_never_sent_twice_by_itself() -> None:
    """After a broken connection it is unknown whether counts arrived, so the sender decides."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT), then_reset())
        await upstream.get_features(None)
        with pytest.raises(UpstreamError):
            await upstream.send_metrics({})
    assert [seen.method for seen in server.requests] == ["GET", "POST"]


async def test_names_beyond_ascii_are_sent_as_utf8_and_control_characters_are_not_sent() -> None:
    """An application name is free text; a line break in it must not become a header of its own."""
    async with loopback() as server:
        identity = Identity("größe\r\nx-evil: 1", " i ", "c")
        upstream = Upstream(options(server.url, identity=identity), clock=FakeClock(), log=RecordingLog())
        await upstream.get_features(None)
        await upstream.aclose()
    headers = server.requests[0].headers
    assert headers["unleash-appname"].encode("latin-1").decode() == "größe  x-evil: 1"
    assert headers["unleash-instanceid"] == "i" and "x-evil" not in headers


def test_a_token_that_no_header_can_carry_stops_the_start() -> None:
    """The message names the option and not the token."""
    with pytest.raises(ConfigurationError, match="flagsvcApiToken") as caught:
        Upstream(options("http://flags.example", token="hidden\nx"), clock=FakeClock(), log=RecordingLog())
    assert "hidden" not in str(caught.value)


# ---- where the API is


GOOD, AWAY = reply(200, DOCUMENT), reply(404)
HERE, BELOW = "/client/features", "/api/client/features"
SEARCHES: dict[str, tuple[str, tuple[Any, ...], list[str], list[str]]] = {
    "404 at the address": ("/", (AWAY, GOOD, AWAY), ["", "not-found"], [HERE, BELOW, BELOW]),
    "a web page there": ("/", (reply(200, b"<html>", content_type="text/html"), GOOD), [""], [HERE, BELOW]),
    "an address that works": ("/flags", (GOOD, AWAY), ["", "not-found"], [f"/flags{HERE}"] * 2),
    "an address that ends in api": ("/api", (AWAY,), ["not-found"], [BELOW]),
    "neither works for a while": ("", (AWAY, AWAY, GOOD), ["not-found", ""], [HERE, BELOW, HERE]),
    "a refusal at the api": ("", (AWAY, reply(401)), ["unauthorized"], [HERE, BELOW]),
}
"""The path of the address that is given, the answers, the kind of error of each request, if any, and the paths that are asked."""


@pytest.mark.parametrize("name", SEARCHES)
async def test_where_the_api_is(name: str) -> None:
    """404 or a web page at the address as given: `/api` is tried, kept, logged; what worked once is not left."""
    path, answers, kinds, asked = SEARCHES[name]
    async with loopback() as server:
        log = RecordingLog()
        upstream = Upstream(options(f"{server.url}{path}"), clock=FakeClock(), log=log)
        server.script(*answers)
        for kind in kinds:
            if kind:
                assert (await fault(upstream)).kind == kind
            else:
                assert (await upstream.get_features(None)).body == DOCUMENT
        await upstream.aclose()
    assert [seen.path for seen in server.requests] == asked
    found = asked[:2] == [HERE, BELOW] and kinds[0] == ""
    assert [line.fields for line in log.lines if line.level == "warn"] == [{"url": f"{server.url}/api"}] * found


async def test_a_403_beside_the_api_is_a_refusal_with_a_hint() -> None:
    """unleash-server answers 403 to a good token at its root; only 404 and web pages start the search, but the message helps."""
    for path, hinted in (("", True), ("/api", False)):
        async with session(path) as (server, upstream):
            server.script(reply(403))
            error = await fault(upstream)
        assert error.kind == "unauthorized" and len(server.requests) == 1
        assert ("the address may lack `/api`" in str(error)) is hinted


async def test_a_refusal_tells_the_kind_of_token() -> None:
    """The error for 401 and 403 has the token's kind by its form, and the needed kind; also for a later token."""
    for status in (401, 403):
        async with session(token="user:very-hidden-token") as (server, upstream):
            server.script(reply(status), reply(status), reply(500))
            assert "form of a personal access token" in str(await fault(upstream))
            upstream.renew("*:*.very-hidden-token")
            error = str(await fault(upstream))
            assert "form of an admin token" in error and "a backend token is needed" in error
            assert "the form of" not in str(await fault(upstream))


async def test_posts_search_for_the_api_as_well() -> None:
    """A restored proxy may report before its first poll went well."""
    async with session("") as (server, upstream):
        server.script(reply(404), reply(202))
        await upstream.send_metrics({})
        await upstream.send_metrics({})
    paths = ["/client/metrics", "/api/client/metrics", "/api/client/metrics"]
    assert [seen.path for seen in server.requests] == paths


async def test_another_token() -> None:
    """From the next request on, all kinds of requests use it, over the existing connection."""
    async with session() as (server, upstream):
        server.script(reply(200, DOCUMENT), reply(200, DOCUMENT), reply(202))
        await upstream.get_features(None)
        assert upstream.renew("another-token") and not upstream.renew("another-token")
        await upstream.get_features(None)
        await upstream.send_metrics({})
    assert [seen.headers["authorization"] for seen in server.requests] == [TOKEN, "another-token", "another-token"]


# ---- what bad answers are

FAULTS = [
    (reply(401), "unauthorized", 401, None),
    (reply(429, retry_after="17"), "throttled", 429, 17.0),
    (reply(503, retry_after="3"), "server", 503, 3.0),
    (reply(204), "unexpected", 204, None),
    (reply(200, b"<!doctype html>", content_type="text/html; charset=utf-8"), "document", 200, None),
    (then_close(reply(200, DOCUMENT, content_length="100")), "document", None, None),
    (then_close(reply(200, b"5\r\nabcde\r\n", content_length="-", transfer_encoding="chunked")), "document", None, None),
    (reply(200, b"x" * 1_000_001), "document", None, None),
    (reply(200, gzip.compress(bytes(50_000_000)), content_encoding="gzip"), "document", None, None),
    (then_reset(reply(200, DOCUMENT, content_length="100")), "network", None, None),
    (then_reset(), "network", None, None),
    (then_close(b""), "network", None, None),
    (then_close(b"SSH-2.0-something\r\n"), "network", None, None),
]


@pytest.mark.parametrize(("answer", "kind", "status", "wait"), FAULTS)
async def test_every_bad_answer_has_its_kind(answer: Any, kind: str, status: int | None, wait: float | None) -> None:
    """Each is an UpstreamError of the right kind, with its status and Retry-After. The session continues."""
    async with session() as (server, upstream):
        server.script(answer, reply(200, DOCUMENT))
        error = await fault(upstream)
        assert (error.kind, error.status, error.retry_after) == (kind, status, wait)
        assert (await upstream.get_features(None)).body == DOCUMENT


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


@pytest.mark.parametrize(
    ("answer", "limits", "words"),
    [
        (drip(reply(200, DOCUMENT), 0.05), Limits(step_s=5.0, total_s=0.3), "0.3 s"),
        (silence, Limits(step_s=0.2, total_s=5.0), "no answer within the time limit"),
    ],
    ids=["each byte comes in time, the whole does not", "nothing comes"],
)
async def test_what_is_slow_is_given_up(answer: Any, limits: Limits, words: str) -> None:
    """A limit holds for each step of an exchange, and another one for the whole. It is a network error."""
    async with session(limits=limits) as (server, upstream):
        server.script(answer)
        error = await fault(upstream)
    assert error.kind == "network" and words in str(error)


async def test_a_post_is_taken_even_if_the_rest_of_its_answer_never_comes() -> None:
    """The status has said all there is to know."""
    async with session() as (server, upstream):
        server.script(then_close(reply(202, b"half", content_length="100")))
        await upstream.send_metrics({})
        server.script(reply(202, b"x" * 200_000))
        await upstream.send_metrics({})


async def test_nobody_listening_is_a_network_error() -> None:
    """The message names the address."""
    async with loopback() as server:
        url = server.url
    upstream = Upstream(options(url), clock=FakeClock(), log=RecordingLog())
    error = await fault(upstream)
    assert error.kind == "network" and f"`{url}`" in str(error)
    await upstream.aclose()


@pytest.mark.parametrize("host", ["xn--", "[v1.a]", "\u00ad", "a..b", "a" * 64, "h/\udcff"])
async def test_a_host_that_is_none_is_a_network_error(host: str) -> None:
    """An invalid host is an error like any other: the loop continues and logs it once."""
    upstream = Upstream(options(f"http://{host}/api"), clock=FakeClock(), log=RecordingLog())
    assert (await fault(upstream)).kind == "network"
    await upstream.aclose()


@pytest.mark.parametrize("host", ["xn--", "\u00ad", "a..b", "proxy:99999"])
async def test_an_outbound_proxy_that_is_no_host_is_a_network_error(host: str) -> None:
    """The message names neither the proxy nor its password."""
    through = Outbound(http=f"http://user:hidden@{host}")
    upstream = Upstream(options("http://flags.invalid/api", outbound=through), clock=FakeClock(), log=RecordingLog())
    error = await fault(upstream)
    assert error.kind == "network" and host not in str(error)
    await upstream.aclose()


async def test_a_refused_post_is_an_error() -> None:
    """Registration and metrics share the error map."""
    async with session() as (server, upstream):
        for answer, kind in ((reply(400), "unexpected"), (reply(307, location="/x"), "unexpected"), (reply(429), "throttled")):
            server.script(answer)
            with pytest.raises(UpstreamError) as caught:
                await upstream.register({})
            assert caught.value.kind == kind
    assert len(server.requests) == 3


# ---- redirects


async def test_a_redirect_on_the_same_origin_is_followed_for_a_document() -> None:
    """Token and ETag go along, for it is the same server."""
    async with session() as (server, upstream):
        server.script(reply(307, location="/v2/features?x=1"), reply(200, DOCUMENT))
        assert (await upstream.get_features('"x"')).body == DOCUMENT
    assert server.requests[1].target == "/v2/features?x=1"
    assert server.requests[1].headers["authorization"] == TOKEN


async def test_the_token_never_goes_to_another_origin() -> None:
    """A redirect elsewhere is an error, and the other server is not even asked."""
    async with loopback() as other, session() as (server, upstream):
        server.script(reply(302, location=f"{other.url}/api/client/features"))
        error = await fault(upstream)
    assert error.kind == "unexpected" and not other.requests


async def test_a_circle_of_redirects_ends() -> None:
    """After five steps it is an error."""
    async with session() as (server, upstream):
        server.script(reply(302, location="/api/client/features"))
        assert (await fault(upstream)).status == 302
    assert len(server.requests) == 6


async def test_requests_are_counted() -> None:
    """Each has its name, and how it ended; a second try of the address is one request. The bytes are those on the wire."""
    packed = gzip.compress(DOCUMENT * 1000)
    async with session("") as (server, upstream):
        server.script(reply(404), reply(200, packed, content_encoding="gzip"), reply(503), reply(202), reply(401))
        assert (await upstream.get_features(None)).body == DOCUMENT * 1000
        await fault(upstream)
        await upstream.send_metrics({})
        with pytest.raises(UpstreamError):
            await upstream.register({})
        found = {labels: sum(each.counts) for labels, each in upstream.calls.durations.items()}
        assert found == {
            ("features", "ok"): 1,
            ("features", "server"): 1,
            ("usage", "ok"): 1,
            ("registration", "unauthorized"): 1,
        }
        assert len(packed) < upstream.calls.received < len(packed) + 1000
