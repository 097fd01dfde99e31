"""The upstream session over real sockets: TLS, outbound proxies, and downloads from elsewhere.

Every answer of an upstream is an event of the life cycle: its name, its transition, and the time of the next poll.
"""

from __future__ import annotations

import gzip

import pytest

from flagsvc.core.clock import SystemClock
from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.upstream import Limits, Outbound, Trust, Upstream, download
from flagsvc.testing import FakeClock, RecordingLog
from support.loopback import Answer, loopback, reply, silence, then_reset
from support.pki import Authority
from support.polling import ONE, TWO, PollerScene, document
from support.upstream_session import DOCUMENT, LIMITS, options, session

# ---- TLS and outbound proxies


async def test_http_goes_through_the_outbound_proxy() -> None:
    """The proxy gets the whole address and the request as it is; the upstream is not asked directly."""
    async with loopback() as proxy, loopback() as server:
        outbound = Outbound(http=f"http://user:pw@127.0.0.1:{proxy.port}")
        upstream = Upstream(options(f"{server.url}/api", outbound=outbound), clock=FakeClock(), log=RecordingLog())
        proxy.script(reply(200, DOCUMENT))
        assert (await upstream.get_features(None)).body == DOCUMENT
        await upstream.aclose()
    (request,) = proxy.requests
    assert request.target == f"{server.url}/api/client/features" and not server.requests
    assert request.headers["proxy-authorization"].startswith("Basic ")


async def test_an_outbound_proxy_may_itself_be_spoken_to_over_tls() -> None:
    """`HTTP_PROXY=https://…`."""
    tls = Authority().server()
    async with loopback(tls) as proxy:
        chosen = options("http://flags.invalid/api", outbound=Outbound(http=proxy.url), trust=Trust(False))
        upstream = Upstream(chosen, clock=FakeClock(), log=RecordingLog())
        proxy.script(reply(200, DOCUMENT))
        assert (await upstream.get_features(None)).body == DOCUMENT
        await upstream.aclose()


async def test_no_proxy_and_the_environment() -> None:
    """An exempt upstream is reached directly, and proxy variables of the process count for nothing here."""
    async with loopback() as proxy, loopback() as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HTTP_PROXY", proxy.url)
            patch.setenv("http_proxy", proxy.url)
            for outbound in (Outbound(http=proxy.url, exempt=("127.0.0.0/8",)), Outbound()):
                upstream = Upstream(options(server.url, outbound=outbound), clock=FakeClock(), log=RecordingLog())
                server.script(reply(200, DOCUMENT))
                await upstream.get_features(None)
                await upstream.aclose()
    assert len(server.requests) == 2 and not proxy.requests


# ---- a document from elsewhere


async def test_a_download_sends_its_own_authorization_and_nothing_about_us() -> None:
    """Bootstrapping may go to a stranger: no token, no instance id."""
    async with loopback() as server:
        server.script(reply(302, location="/there"), reply(200, gzip.compress(DOCUMENT), content_encoding="gzip"))
        body = await get(f"{server.url}/flags.json?x=1", "Bearer abc")
    assert body == DOCUMENT
    assert [seen.target for seen in server.requests] == ["/flags.json?x=1", "/there"]
    assert server.requests[0].headers["authorization"] == "Bearer abc"
    assert not any(name.startswith("unleash") for name in server.requests[0].headers)


async def get(url: str, authorization: str | None) -> bytes:
    """Download directly."""
    return await download(url, authorization=authorization, trust=Trust(), outbound=Outbound(), clock=SystemClock())


SLOW = {"silence": Limits(step_s=0.5, total_s=1.0)}
"""The answers that end only when our own time is over."""
PACKED = gzip.compress(TWO)
EMPTY = document()

# what came → the event, the state of a configuration that was fresh, seconds to the next poll at an interval of 5 (no draw);
# `test_upstream_wire.py` has more answers of each kind
LIFE: dict[str, tuple[Answer, str, str, float]] = {
    "a document": (reply(200, TWO), "fetched", "fresh", 5),
    "a document of another type": (reply(200, TWO, content_type="text/plain"), "fetched", "fresh", 5),
    "a packed document": (reply(200, PACKED, content_encoding="gzip"), "fetched", "fresh", 5),
    "the same document": (reply(200, ONE), "same", "fresh", 5),
    "not modified": (reply(304), "not-modified", "fresh", 5),
    "suddenly empty": (reply(200, EMPTY), "empty", "fresh", 5),
    "a document as a web page": (reply(200, TWO, content_type="text/html"), "unusable", "refused", 5),
    "nothing": (reply(200), "unusable", "refused", 5),
    "not JSON": (reply(200, TWO[:-1]), "unusable", "refused", 5),
    "401": (reply(401), "refused", "refused", 25),
    "403 with a wish": (reply(403, retry_after="40"), "refused", "refused", 40),
    "429 with a wish": (reply(429, retry_after="17"), "failed", "stale", 17),
    "429 with a wish for ages": (reply(429, retry_after="99999"), "failed", "stale", 300),
    "500": (reply(500), "failed", "stale", 5),
    "a redirect elsewhere": (reply(302, location="http://127.0.0.2/client/features"), "failed", "stale", 5),
    "reset": (then_reset(), "failed", "stale", 5),
    "silence": (silence, "failed", "stale", 5),
}
BAD = [name for name, (_, event, _, _) in LIFE.items() if event in ("unusable", "refused", "failed")]


def happened(world: PollerScene) -> list[str]:
    """Return the events so far, each once."""
    return [name for name, count in world.holder.event_counts.items() if count]


async def polled(world: PollerScene) -> float:
    """Return how long the loop sleeps after the poll that is under way."""
    return await world.clock.next_sleep()


@pytest.mark.parametrize("name", LIFE)
async def test_what_follows_from_an_answer(name: str) -> None:
    """The event is counted, the state follows the table, and the configuration stays unless a document replaced it."""
    answer, event, state, pause = LIFE[name]
    async with session(limits=SLOW.get(name, LIMITS)) as (server, upstream):
        server.script(reply(200, ONE, etag='"one"'), answer)
        world = PollerScene(HttpSource(upstream))
        world.poller.start()
        await world.clock.advance(await polled(world))
        assert (await polled(world), world.holder.state) == (pause, state)
        assert happened(world) == list(dict.fromkeys(["fetched", event]))
        assert world.serves == (["two"] if event == "fetched" else ["one"])
        assert world.holder.failures == (name in BAD)
        assert world.holder.checked_at == (0.0 if name in BAD else 5.0)
        server.script(reply(200, TWO))
        await world.clock.advance(pause)
        assert (await polled(world), world.holder.state, world.holder.failures) == (5.0, "fresh", 0)
        await world.poller.stop()
