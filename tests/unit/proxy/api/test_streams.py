"""Event streams for browsers at the proxy: who may open a stream, and what the stream says (dialects: Event streams)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from flagsvc.http.call import Call
from flagsvc.http.messages import Request, Response
from flagsvc.http.parts import Outlet, PartsResponse
from flagsvc.proxy.api.streams import PERIOD_S, PERIODS, encode64, make_secrets
from flagsvc.proxy.configuration import ConfigurationDocument
from support import deltas
from support.aio import until
from support.wirekit import DOCUMENT, KEY, PEER, TOKEN, TRANSPORTS, Wire, open_wire

KEYED = ("/proxy/stream", "/api/frontend/stream", "/api/proxy/stream")
BULK = "/ofrep/v1/evaluate/flags"
STREAM = "/ofrep/v1/stream"


class Caller(Outlet):
    """A caller that reads everything."""

    def __init__(self, response: PartsResponse) -> None:
        self.parts = response.parts
        self.text = ""
        self.parts.open(self)

    def write(self, data: bytes) -> None:
        self.text += data.decode()

    def end(self) -> None:
        self.parts.lose()

    @property
    def hints(self) -> list[str]:
        """The versions of the hints so far."""
        events = [dict(line.split(": ", 1) for line in each.splitlines() if line[:1] != ":") for each in self.text.split("\n\n")]
        hints = [json.loads(each["data"]) for each in events if "data" in each]
        assert all(each["type"] == "refetchEvaluation" for each in hints)
        return [each["etag"] for each in hints]


def make(**settings: Any) -> Wire:
    return open_wire(TRANSPORTS["front"], ofrep=True, **settings)


async def ask(wire: Wire, target: str, key: str | None = None, method: str = "GET", **headers: str) -> Response:
    """Return the response to a request without a body."""
    return await deltas.ask(wire.service, target, method, authorization=key, **headers)


async def listen(wire: Wire, target: str, key: str | None = None, **headers: str) -> Caller:
    response = await ask(wire, target, key, **headers)
    assert isinstance(response, PartsResponse), response.body
    return Caller(response)


async def evaluate(wire: Wire, query: str = "", tag: str = "", path: str = BULK) -> tuple[int, str, str]:
    """Return status, entity tag and URL of the stream of an answer with all flags."""
    pairs = [(b"authorization", KEY.encode()), (b"content-type", b"application/json"), (b"content-length", b"14")]
    pairs += [(b"if-none-match", tag.encode())] if tag else []
    admitted = wire.service.admit(Request(b"POST", path.encode(), query.encode(), pairs, peer=PEER))
    assert isinstance(admitted, Call)
    answer = admitted.handler.answer(admitted, b'{"context":{}}')
    response = answer if isinstance(answer, Response) else await answer
    found = dict(response.own)[b"etag"].decode()
    if response.status == 304:
        return 304, found, ""
    (stream,) = json.loads(response.body or b"".join(response.pieces or []))["eventStreams"]
    assert (stream["type"], stream["inactivityDelaySec"]) == ("sse", 120)
    return response.status, found, stream["endpoint"]["requestUri"]


def change(wire: Wire, number: int) -> str:
    """Serve the same flags as another document, and return its version."""
    snapshot = wire.holder.current
    assert snapshot is not None
    document = ConfigurationDocument(json.dumps({**DOCUMENT, "number": number}).encode(), f'"v{number}"')
    wire.holder.replace(snapshot, document, 0)
    return document.version


@pytest.mark.parametrize("path", KEYED)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("key", "refused"), [(KEY, 0), (TOKEN, 1), (None, 1), ("wrong", 1)])
async def test_a_client_key_opens_the_stream(path: str, method: str, key: str | None, refused: bool) -> None:
    """A client key opens the stream, no other key does. A HEAD has its headers. No cache keeps them, and nginx does not buffer."""
    response = await ask(make(), path, key, method)
    assert (response.status in (401, 403)) == refused
    if not refused:
        assert response.status == 200 and isinstance(response, PartsResponse) == (method == "GET")
        headers = dict(response.fixed)
        assert headers[b"content-type"] == b"text/event-stream" and headers[b"cache-control"] == b"no-store"
        assert headers[b"x-accel-buffering"] == b"no" and headers[b"access-control-allow-origin"] == b"*"


@pytest.mark.parametrize("path", KEYED)
async def test_each_change_is_a_hint(path: str) -> None:
    """A caller hears each version once, and nothing of flags. A document with the same version is no change."""
    wire = make()
    caller = await listen(wire, path, KEY)
    assert caller.hints == []
    versions = [change(wire, number) for number in (2, 3)][1:]
    await until(lambda: caller.hints == versions)
    change(wire, 3)
    versions.append(change(wire, 4))
    await until(lambda: caller.hints == versions)
    assert "features" not in caller.text and "on" not in caller.hints


@pytest.mark.parametrize("how", ["header", "query"])
async def test_who_comes_back_misses_nothing(how: str) -> None:
    """`Last-Event-ID`, or `at` in the query, is what the caller has: if that is old, it hears at once; the header counts first."""
    wire = make()
    old, new = change(wire, 1), change(wire, 2)
    for known, hints in ((old, [new]), (new, []), ("nonsense", [new])):
        given = {"last_event_id": known} if how == "header" else {}
        target = f"/proxy/stream?at={known if how == 'query' else old}"
        assert (await listen(wire, target, KEY, **given)).hints == hints, known


async def test_a_ticket_opens_the_stream_of_the_answer() -> None:
    """The answer with all flags names a stream that opens without a key, with the version of the answer. The ticket is not the
    key, and the answer is the same for all callers of a period."""
    wire = make(base_path="/base")
    path = f"/base{BULK}"
    _, tag, url = await evaluate(wire, path=path)
    assert url.startswith(f"/base{STREAM}?ticket=") and KEY not in url
    caller = await listen(wire, url)
    assert caller.hints == []
    assert (await evaluate(wire, tag=tag, path=path))[0] == 304
    version = change(wire, 2)
    await until(lambda: caller.hints == [version])
    assert (await listen(wire, url)).hints == [version], "the URL has the version of the answer"


async def test_a_ticket_lasts_a_day_and_answers_name_another_in_time() -> None:
    """A ticket counts for its period and PERIODS more. A new period has another ticket and another entity tag, so that no 304
    keeps a caller on a ticket that ends."""
    wire = make()
    _, tag, url = await evaluate(wire)
    for _ in range(PERIODS):
        await wire.clock.advance(PERIOD_S)
        status, other, newer = await evaluate(wire, tag=tag)
        assert status == 200 and other != tag and newer != url
        await listen(wire, url)
    await wire.clock.advance(PERIOD_S)
    assert (await ask(wire, url)).status == 401
    await listen(wire, (await evaluate(wire))[2])


FORGED = {
    "none": "",
    "no ticket": "ticket=x",
    "half a ticket": "ticket=WyIiLG51bGwsMF0",
    "no base64": "ticket=%F0%9F%98%80.%F0%9F%98%80",
    "of another shape": f"ticket={encode64(b'[1]').decode()}.{encode64(bytes(16)).decode()}",
    "with another signature": f"ticket={encode64(b'[' + b'%22%22' + b',null,0]').decode()}.{encode64(bytes(16)).decode()}",
    "very long": f"ticket={'a' * 12_000}",
}


@pytest.mark.parametrize("query", FORGED.values(), ids=FORGED)
async def test_what_is_no_ticket_opens_nothing(query: str) -> None:
    """401, with a word about what to do, and nothing in the log."""
    wire = make()
    response = await ask(wire, f"{STREAM}?{query}")
    assert response.status == 401 and b"ask for all flags again" in response.body and not wire.log.lines


async def test_a_ticket_of_other_keys_opens_nothing() -> None:
    """A ticket is signed with what replicas with the same keys share. A ticket that is changed, or signed with other keys, is
    401."""
    wire, replica, other = make(), make(), make(client_keys=("another",))
    _, _, url = await evaluate(wire)
    await listen(replica, url)
    assert (await ask(other, url)).status == 401
    signed, _, rest = url.partition(".")
    forged = signed[:-2] + encode64(b"]x")[:2].decode() + "." + rest
    assert (await ask(wire, forged)).status == 401


async def test_tickets_go_on_while_keys_are_replaced() -> None:
    """A ticket of the first key counts where that key is listed, in any order. A stream ends with the key of its ticket."""
    first, both, last = make(client_keys=(KEY,)), make(client_keys=(KEY, "next")), make(client_keys=("next", KEY))
    for signer in (first, both):
        _, _, url = await evaluate(signer)
        for each in (first, both, last):
            await listen(each, url)
    _, _, url = await evaluate(last)
    await listen(both, url)
    assert (await ask(first, url)).status == 401
    caller = await listen(both, (await evaluate(both))[2])
    both.service.stream.tickets._get_secrets = lambda: make_secrets(["next"])
    caller.parts.beat(0.0)  # type: ignore[attr-defined]
    assert caller.parts.outlet is None


async def test_a_version_that_a_caller_has_heard_of_is_never_a_304() -> None:
    """With `flagConfigEtag` of another version than that of this process, the answer is 200. If the version is new here, the
    upstream is asked, and the answer waits for it."""
    wire = make()
    old, _ = change(wire, 1), change(wire, 2)
    asked: list[int] = []
    _, tag, _ = await evaluate(wire)
    present = wire.holder.document
    assert present is not None
    wire.holder.ask_upstream = lambda: asked.append(1)
    assert (await evaluate(wire, f"flagConfigEtag={present.version}", tag))[0] == 304
    assert (await evaluate(wire, f"flagConfigEtag={old}", tag))[0] == 200
    assert asked == [], "both are known"
    coming = ConfigurationDocument(json.dumps({**DOCUMENT, "number": 3}).encode(), '"v3"').version
    waiting = asyncio.ensure_future(evaluate(wire, f"flagConfigEtag={coming}", tag))
    await until(lambda: bool(asked))
    assert not waiting.done()
    change(wire, 3)
    status, _, url = await waiting
    assert status == 200 and url.endswith(f"at={coming}")


async def test_streams_are_refused_and_never_ended_for_others() -> None:
    """`maxStreams` is the most of the process: one more is 429 with Retry-After. With 0 there are none: 404, and no answer names
    any."""
    wire = make(max_streams=2)
    callers = [await listen(wire, "/proxy/stream", KEY), await listen(wire, (await evaluate(wire))[2])]
    refused = await ask(wire, "/proxy/stream", KEY)
    assert refused.status == 429 and dict(refused.own)[b"retry-after"] == b"30" and wire.service.reached.counts["streams"] == 1
    version = change(wire, 2)
    await until(lambda: all(each.hints == [version] for each in callers))
    callers[0].end()
    await listen(wire, "/proxy/stream", KEY)
    off = make(max_streams=0)
    assert (await ask(off, "/proxy/stream", KEY)).status == 404 and (await ask(off, STREAM)).status == 401
    with pytest.raises(KeyError, match="eventStreams"):
        await evaluate(off)


async def test_a_ticket_without_room_is_told_when_to_come_back() -> None:
    """An `EventSource` gives up at 429. So it hears the newest version, and to come back within 30 s, and its stream ends."""
    wire = make(max_streams=1)
    url = (await evaluate(wire))[2]
    await listen(wire, "/proxy/stream", KEY)
    version = change(wire, 2)
    late = await listen(wire, url)
    assert late.parts.outlet is None and late.hints == [version]
    assert 20_000 <= int(late.text.removeprefix("retry: ").partition("\n")[0]) < 29_000
    assert wire.service.reached.counts["streams"] == 1
