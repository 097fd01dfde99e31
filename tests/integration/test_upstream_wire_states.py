"""Every answer of an upstream is an event of the life cycle: its name, its transition, and the time of the next poll."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.upstream import Limits
from support.aio import asynchronous
from support.loopback import Answer, drip, reply, silence, then_close, then_reset
from support.polling import ONE, TWO, PollerScene, document, stored
from support.upstream_session import LIMITS, session

SLOW = {"silence": Limits(step_s=0.5, total_s=1.0), "a slow drip": Limits(step_s=0.5, total_s=1.0)}
"""The answers that end only when our own time is over."""
PACKED = gzip.compress(TWO)
EMPTY = document()

# what came → the event, the state of a configuration that was fresh, seconds to the next poll at an interval of 5 (no draw)
LIFE: dict[str, tuple[Answer, str, str, float]] = {
    "a document": (reply(200, TWO), "fetched", "fresh", 5),
    "a document of another type": (reply(200, TWO, content_type="text/plain"), "fetched", "fresh", 5),
    "a packed document": (reply(200, PACKED, content_encoding="gzip"), "fetched", "fresh", 5),
    "the same document": (reply(200, ONE), "same", "fresh", 5),
    "not modified": (reply(304), "not-modified", "fresh", 5),
    "suddenly empty": (reply(200, EMPTY), "empty", "fresh", 5),
    "a web page": (reply(200, b"<!doctype html>", content_type="text/html"), "unusable", "refused", 5),
    "a document as a web page": (reply(200, TWO, content_type="text/html"), "unusable", "refused", 5),
    "a page of no type": (reply(200, b"<!doctype html>"), "unusable", "refused", 5),
    "nothing": (reply(200), "unusable", "refused", 5),
    "not JSON": (reply(200, TWO[:-1]), "unusable", "refused", 5),
    "another shape": (reply(200, b'{"features":{}}'), "unusable", "refused", 5),
    "cut off": (then_close(reply(200, TWO, content_length="999")), "unusable", "refused", 5),
    "wrong gzip": (reply(200, TWO, content_encoding="gzip"), "unusable", "refused", 5),
    "half of the gzip": (reply(200, PACKED[:-3], content_encoding="gzip"), "unusable", "refused", 5),
    "another coding": (reply(200, TWO, content_encoding="br"), "unusable", "refused", 5),
    "401": (reply(401), "refused", "refused", 25),
    "403": (reply(403), "refused", "refused", 25),
    "403 with a wish": (reply(403, retry_after="40"), "refused", "refused", 40),
    "404": (reply(404), "failed", "stale", 5),
    "429": (reply(429), "failed", "stale", 5),
    "429 with a wish": (reply(429, retry_after="17"), "failed", "stale", 17),
    "429 with a wish for ages": (reply(429, retry_after="99999"), "failed", "stale", 300),
    "500": (reply(500), "failed", "stale", 5),
    "503 with a wish": (reply(503, retry_after="6"), "failed", "stale", 6),
    "a status that means nothing": (reply(204), "failed", "stale", 5),
    "a redirect elsewhere": (reply(302, location="http://127.0.0.2/client/features"), "failed", "stale", 5),
    "a redirect to nowhere": (reply(301), "failed", "stale", 5),
    "reset": (then_reset(), "failed", "stale", 5),
    "reset in the middle": (then_reset(reply(200, TWO, content_length="999")), "failed", "stale", 5),
    "closed at once": (then_close(b""), "failed", "stale", 5),
    "another protocol": (then_close(b"SSH-2.0-something\r\n"), "failed", "stale", 5),
    "silence": (silence, "failed", "stale", 5),
    "a slow drip": (drip(reply(200, TWO), 0.05), "failed", "stale", 5),
}
BAD = [name for name, (_, event, _, _) in LIFE.items() if event in ("unusable", "refused", "failed")]


def happened(world: PollerScene) -> list[str]:
    """Return the events so far, each once."""
    return [name for name, count in world.holder.event_counts.items() if count]


async def polled(world: PollerScene) -> float:
    """Return how long the loop sleeps after the poll that is under way."""
    return await world.clock.next_sleep()


@pytest.mark.parametrize("name", LIFE)
@asynchronous
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


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("warm", [False, True])
@asynchronous
async def test_who_starts_first_does_not_matter(name: str, warm: bool) -> None:
    """After any failure at the start, a cold proxy polls again within seconds, or within a minute if it is asked to wait."""
    answer, _, _, wish = LIFE[name]
    async with session(limits=SLOW.get(name, LIMITS)) as (server, upstream):
        server.script(answer)
        given: dict[str, Any] = {"store": stored(ONE, None)} if warm else {}
        world = PollerScene(HttpSource(upstream), **given)
        world.poller.start()
        pause = await polled(world)
        assert pause == (wish if warm else 1 if wish in (5, 25) else min(wish, 60))
        assert (world.serves, world.holder.state) == ((["one"], "restored") if warm else (None, "cold"))
        server.script(reply(200, TWO))
        await world.clock.advance(pause)
        assert (await polled(world), world.serves, world.holder.state) == (5.0, ["two"], "fresh")
        await world.poller.stop()
