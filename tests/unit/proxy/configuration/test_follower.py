"""A proxy that follows its upstream by stream: when it polls, when it falls back to polls, and when it asks for a stream again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from flagsvc.http.client.answers import Answer as WholeAnswer
from flagsvc.http.client.connection import Keep
from flagsvc.http.client.transport import Transport
from flagsvc.proxy import upstream as upstream_module
from flagsvc.proxy.configuration import follower as follower_module
from flagsvc.proxy.configuration.lifecycle import State
from flagsvc.proxy.configuration.sources import AGAIN_S
from flagsvc.settings.rows.upstream import AUTO, STREAMING
from flagsvc.testing import turns
from support.aio import until
from support.loopback import Answer, Request, Writer, reply, silence, then_close, then_reset
from support.polling import EMPTY, ONE, TWO, document
from support.streams import STREAM_HEAD, FollowScene, StreamingServer, chunk, event, following, id_of
from support.upstream_faults import then_silence

CALM_S = 42.0
"""Seconds between two polls beside a stream, with the lowest draw."""


async def opened(scene: FollowScene) -> StreamingServer:
    """Wait until the stream is open and the poller rests, and let a second pass; return the server."""
    await until(lambda: scene.source.calm_s and scene.server.streams and scene.clock.sleeping)
    await scene.clock.advance(1)
    return scene.server


async def polls(scene: FollowScene, count: int) -> None:
    """Wait until there have been so many polls, and the poller rests."""
    await until(lambda: len(scene.server.polls) == count and scene.clock.sleeping)
    await turns()


async def test_a_change_is_fetched_when_the_stream_tells_of_it() -> None:
    """No clock moves. The request says what the proxy has, and beside the stream there is about a poll a minute."""
    async with following(project="shop") as scene:
        server = await opened(scene)
        [asked] = server.asked
        assert asked.target == "/api/client/streaming?project=shop"
        assert asked.headers["accept"] == "text/event-stream" and asked.headers["accept-encoding"] == "identity"
        assert asked.headers["authorization"].endswith("very-hidden-token") and asked.headers["unleash-appname"] == "some-app"
        assert asked.headers["last-event-id"] == id_of(ONE)
        server.change(TWO)
        await polls(scene, 2)
        assert (scene.polling.serves, scene.clock.monotonic(), scene.clock.sleeping) == (["two"], 1.0, [CALM_S])
        assert (scene.notes.opened, scene.notes.events["unleash-updated"], scene.ends) == (1, 1, {})
        assert scene.log.at("info").count("the upstream tells of changes by a stream") == 1


async def test_a_request_for_a_stream_accepts_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """No header comes twice, and no document is accepted."""
    sent: list[Sequence[tuple[str, bytes]]] = []
    stream = Transport.stream

    async def record(self: Transport, url: str, headers: Sequence[tuple[str, bytes]], keep: Keep, silence_s: float) -> WholeAnswer:
        sent.append(headers)
        return await stream(self, url, headers, keep, silence_s)

    monkeypatch.setattr(Transport, "stream", record)
    async with following() as scene:
        await opened(scene)
    names = [name for name, _ in sent[0]]
    assert len(names) == len(set(names)) and dict(sent[0])["accept"] == b"text/event-stream"


async def test_new_certificates_open_a_new_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The poll that finds them closes the stream that the former certificates opened."""
    async with following() as scene:
        await opened(scene)
        changes = [True]
        monkeypatch.setattr(scene.upstream._files, "detect_change", lambda: bool(changes) and changes.pop())
        scene.source.poll_now()
        await until(lambda: scene.ends == {"broken": 1} and 1.0 in scene.clock.sleeping)
        await scene.clock.advance(1)
        await until(lambda: scene.notes.is_open)


async def test_what_says_nothing_new_causes_no_poll() -> None:
    """A heartbeat, the document that is here already, and unknown events."""
    async with following() as scene:
        server = await opened(scene)
        for sent in (
            b": heartbeat\n\n",
            event("unleash-connected", id_of(ONE)),
            event("news", "7"),
            event("fetch-mode", "8", "streaming"),
        ):
            server.send(sent)
        await until(lambda: sum(scene.notes.events.values()) == 3)
        await turns()
        assert (len(server.polls), scene.notes.events["other"]) == (1, 1)


@pytest.mark.parametrize("asked", [0, 1])
async def test_an_event_that_comes_while_its_document_is_fetched_is_settled(asked: int) -> None:
    """It causes no second poll. A request for a poll meanwhile causes a second poll."""
    async with following() as scene:
        server = await opened(scene)

        async def tell_meanwhile(request: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
            server.change(TWO)
            await until(lambda: scene.notes.events["unleash-updated"] == 1)
            server.features = server.serve
            if asked:
                scene.source.poll_now()
            await server.serve(request, reader, writer)

        server.features = tell_meanwhile
        scene.source.poll_now()
        await until(lambda: scene.polling.serves == ["two"])
        await polls(scene, 2 + asked)
        await scene.clock.advance(1)
        assert len(server.polls) == 2 + asked


async def test_a_flood_of_events_is_one_poll_each_tenth_of_a_second() -> None:
    """Events that come during the pause are one."""
    async with following() as scene:
        server = await opened(scene)
        server.change(TWO)
        await polls(scene, 2)
        for number in range(50):
            server.change(document(f"n{number}"))
        await until(lambda: scene.notes.events["unleash-updated"] == 51)
        await until(lambda: scene.clock.sleeping[-1] == pytest.approx(0.1))
        assert len(server.polls) == 2
        await scene.clock.advance(0.1)
        await polls(scene, 3)
        assert scene.polling.serves == ["n49"]


async def test_a_replica_that_does_not_have_it_yet_is_asked_again_soon() -> None:
    """A few times within seconds, then at the pace of the safety net."""
    async with following() as scene:
        server = await opened(scene)
        server.send(event("unleash-updated", id_of(TWO)))
        for number, pause in enumerate((*AGAIN_S, CALM_S), start=2):
            await polls(scene, number)
            assert scene.clock.sleeping == [pause]
            await scene.clock.advance(pause)
        server.send(event("unleash-updated", id_of(TWO)))
        await polls(scene, 7)
        await scene.clock.advance(0.25)
        server.body = TWO
        await scene.clock.advance(0.5)
        await until(lambda: scene.polling.serves == ["two"] and scene.clock.sleeping == [CALM_S])


async def test_an_upstream_whose_etags_tell_no_ids() -> None:
    """It has a document if that is new; else it is asked again soon. The stream goes on after the last event."""
    async with following() as scene:
        scene.server.etag_of = lambda body: f'"{sum(body)}"'
        server = await opened(scene)
        assert "last-event-id" not in server.asked[0].headers
        server.send(event("unleash-updated", "99"))
        await polls(scene, 2)
        assert scene.clock.sleeping == [AGAIN_S[0]]
        server.body = TWO
        await scene.clock.advance(AGAIN_S[0])
        await polls(scene, 3)
        assert (scene.polling.serves, scene.clock.sleeping) == (["two"], [CALM_S])
        scene.loop.end()
        await until(lambda: 1.0 in scene.clock.sleeping)
        await scene.clock.advance(1)
        await until(lambda: len(server.asked) == 2)
        assert server.asked[1].headers["last-event-id"] == "99"
        scene.follower.renew()
        await until(lambda: len(server.asked) == 3)
        assert "last-event-id" not in server.asked[2].headers


async def test_an_empty_document_is_confirmed_as_slowly_as_by_polls() -> None:
    """A server that has lost its flags tells of it twice, and ends the stream: the flags stay for the refresh interval."""
    async with following() as scene:
        server = await opened(scene)
        server.change(EMPTY)
        await polls(scene, 2)
        assert scene.clock.sleeping == [5.0]
        server.send(event("unleash-updated", "1"))
        await until(lambda: scene.notes.events["unleash-updated"] == 2)
        scene.loop.end()
        await until(lambda: not scene.notes.is_open)
        await scene.clock.advance(4.9)
        await turns()
        assert (len(server.polls), scene.polling.serves) == (2, ["one"])
        await scene.clock.advance(0.1)
        await until(lambda: scene.polling.serves == [])


async def test_a_stream_does_not_end_a_pause_that_the_upstream_has_asked_for() -> None:
    """Only a person does, or a new token."""
    async with following() as scene:
        server = await opened(scene)
        server.features = reply(429, retry_after="30")
        server.change(TWO)
        await polls(scene, 2)
        assert scene.clock.sleeping == [30.0]
        server.send(event("unleash-updated", "2"))
        await until(lambda: scene.notes.events["unleash-updated"] == 2)
        await turns()
        assert len(server.polls) == 2
        server.features = None
        scene.source.poll_now()
        await until(lambda: scene.polling.serves == ["two"])


# ---- how a stream ends


def write(scene: FollowScene, data: bytes) -> None:
    """Write bytes into the open streams, which are not framed."""
    for writer in scene.server.streams:
        writer.write(data)


ENDS: dict[str, tuple[Callable[[FollowScene], object], str, float | None]] = {
    "ended in order": (lambda scene: write(scene, b"0\r\n\r\n"), "closed", 1.0),
    "cut": (lambda scene: scene.loop.end(), "broken", 1.0),
    "garbage": (lambda scene: write(scene, b"what is this\r\n"), "broken", 1.0),
    "an endless line": (lambda scene: scene.server.send(b"data: " + b"x" * 70_000), "broken", 1.0),
    "silence": (lambda scene: None, "silent", 1.0),
    "fetch-mode polling": (lambda scene: scene.server.send(event("fetch-mode", "9", "polling")), "polling", None),
}
"""How it ends, the reason that is counted, and the pause until the next stream. A silent connection may be half open."""


@pytest.mark.parametrize(("end", "reason", "pause"), ENDS.values(), ids=ENDS)
async def test_the_end_of_a_stream(
    end: Callable[[FollowScene], object], reason: str, pause: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy polls at once, and goes on with its interval, until the next stream: with the same configuration all the time."""
    monkeypatch.setattr(follower_module, "LONGEST_LINE", 65_536)
    if reason == "silent":
        monkeypatch.setattr(upstream_module, "SILENCE_S", 0.2)
    async with following() as scene:
        await opened(scene)
        monkeypatch.setattr(upstream_module, "SILENCE_S", 45.0)
        scene.server.body = TWO
        end(scene)
        await until(lambda: scene.polling.serves == ["two"])
        await until(lambda: len(scene.clock.sleeping) == (1 if pause is None else 2))
        assert sorted(scene.clock.sleeping) == [5.0] if pause is None else [pause, 5.0]
        assert (scene.notes.is_open, scene.ends, scene.notes.fallbacks) == (False, {reason: 1}, 1)
        assert scene.log.at("warn") == scene.log.at("error") == []
        if pause is not None:
            await scene.clock.advance(pause)
            await until(lambda: scene.notes.is_open)
            assert scene.server.asked[-1].headers["last-event-id"] == id_of(TWO)


async def test_a_stream_that_ends_again_and_again_is_opened_after_growing_pauses() -> None:
    """The stream may ask for a longer pause. One that was open for a while begins with a short pause."""
    short = then_close(STREAM_HEAD + chunk(b"retry: 2000\n\n") + b"0\r\n\r\n")
    async with following(*[short] * 4) as scene:
        for pause in (2.0, 4.0, 8.0, 16.0):
            await until(lambda: pause in scene.clock.sleeping)  # noqa: B023
            await scene.clock.advance(pause)
        await opened(scene)
        await scene.clock.advance(30)
        scene.loop.end()
        await until(lambda: 2.0 in scene.clock.sleeping)


@pytest.mark.parametrize(("wish_ms", "pause"), [(0, follower_module.RETRY_S), (10**7, follower_module.CEILING_S)])
async def test_the_pause_that_a_stream_asks_for_has_limits(wish_ms: int, pause: float) -> None:
    """A stream cannot have the proxy come back at once, nor stay away."""
    async with following(then_close(STREAM_HEAD + chunk(b"retry: %d\n\n" % wish_ms) + b"0\r\n\r\n")) as scene:
        await until(lambda: sum(scene.ends.values()) == 1 and pause in scene.clock.sleeping)


async def test_a_stream_that_something_holds_back_is_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something between the two may collect what is sent. Until a byte comes, and after two silent streams, polls go on."""
    monkeypatch.setattr(upstream_module, "SILENCE_S", 0.2)
    held_back = then_silence(STREAM_HEAD)
    async with following(held_back, held_back) as scene:
        await until(lambda: scene.notes.is_open and scene.clock.sleeping == [5.0])
        await scene.clock.advance(5)
        await polls(scene, 2)
        assert scene.clock.sleeping == [5.0]
        await until(lambda: 1.0 in scene.clock.sleeping)
        await scene.clock.advance(1)
        await until(lambda: scene.ends == {"silent": 2} and scene.clock.sleeping == [5.0])
        await scene.clock.advance(100)
        assert len(scene.server.asked) == 2


async def test_a_stream_that_does_not_tell_of_changes_is_no_stream() -> None:
    """One change may be found by a poll before it is told. After two in a row the stream is closed, and asked for much later."""
    async with following() as scene:
        server = await opened(scene)
        server.change(document("told"))
        for number in range(4):
            await until(lambda: scene.clock.sleeping == [CALM_S])
            server.body = document(f"n{number}")
            await scene.clock.advance(CALM_S)
            await until(lambda: scene.polling.serves == [f"n{number}"])  # noqa: B023
            await turns()
            assert scene.notes.is_open
            if number < 3:
                server.send(event("unleash-updated", id_of(server.body)))
                await until(lambda: scene.notes.events["unleash-updated"] == number + 2)  # noqa: B023
        assert scene.notes.is_open
        await until(lambda: scene.clock.sleeping == [CALM_S])
        server.body = TWO
        await scene.clock.advance(CALM_S)
        await until(lambda: scene.ends == {"behind": 1})
        await scene.clock.advance(1)
        await until(lambda: scene.clock.sleeping == [5.0])
        assert (scene.polling.serves, scene.notes.why) == (["two"], "the stream did not tell of changes")
        await scene.clock.advance(60)
        assert len(server.asked) == 1
        await scene.clock.advance(follower_module.NOT_OFFERED_S[AUTO])
        await until(lambda: server.streams and scene.source.calm_s)
        assert (len(server.asked), scene.ends) == (2, {"behind": 1}), "the next stream has told of all so far"


async def test_a_document_that_is_not_accepted_is_told_once() -> None:
    """Each poll fetches it again, and the stream has nothing more to tell."""
    async with following() as scene:
        server = await opened(scene)
        server.change(b"{")
        for number in range(2, 6):
            await polls(scene, number)
            await scene.clock.advance(scene.clock.sleeping[0])
        assert scene.notes.is_open and scene.polling.serves == ["one"]


async def test_an_upstream_without_etags_is_not_behind() -> None:
    """Each of its answers is a whole document, which may be the same."""
    async with following() as scene:
        scene.server.features = reply(200, ONE)
        await opened(scene)
        await scene.clock.advance(5)
        for number in range(2, 6):
            await polls(scene, number)
            await scene.clock.advance(CALM_S)
        assert scene.notes.is_open


async def test_a_stream_that_was_heard_is_opened_again_soon_whenever_it_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing holds it back; the network has failed, however often."""
    monkeypatch.setattr(upstream_module, "SILENCE_S", 0.2)
    async with following() as scene:
        for number in range(1, 4):
            await opened(scene)
            await scene.clock.advance(follower_module.HEARD_S)
            await until(lambda: scene.ends == {"silent": number} and 1.0 in scene.clock.sleeping)  # noqa: B023
            await scene.clock.advance(1)


async def test_a_document_of_megabytes_in_an_event_costs_no_memory_and_no_other_connection() -> None:
    """The stream has a connection of its own: polls go on while it is busy."""
    async with following() as scene:
        server = await opened(scene)
        (await scene.upstream._open())._places = asyncio.Semaphore(1)
        server.send(b"event: unleash-updated\nid: 7\ndata: " + b"x" * 3_000_000)
        server.body = TWO
        scene.source.poll_now()
        await until(lambda: scene.polling.serves == ["two"])
        server.send(b"\n\n")
        await until(lambda: scene.notes.events["unleash-updated"] == 1)


# ---- how a stream is refused

PACKED = STREAM_HEAD.replace(b"Transfer", b"Content-Encoding: gzip\r\nTransfer") + b"0\r\n\r\n"
NOT_OFFERED: dict[str, Answer] = {
    **{f"status {status}": reply(status) for status in (204, 304, 400, 401, 403, 404, 405, 406, 410, 501)},
    "a page": reply(200, b"<!doctype html>", content_type="text/html"),
    "a document": reply(200, ONE, content_type="application/json"),
    "a compressed stream": PACKED,
    "a redirect to another origin": reply(302, location="https://elsewhere.example/"),
}
PASSING: dict[str, tuple[Answer, str, float]] = {
    "full": (reply(429), "throttled", 1.0),
    "full, for a while": (reply(429, retry_after="70"), "throttled", 70.0),
    "full, for too long": (reply(429, retry_after="90000"), "throttled", 300.0),
    "down": (reply(503), "server", 1.0),
    "down, for a while": (reply(503, retry_after="7"), "server", 7.0),
    "a time-out": (reply(408), "server", 1.0),
    "closed": (then_close(b""), "unreachable", 1.0),
    "reset": (then_reset(), "unreachable", 1.0),
    "no HTTP": (then_close(b"220 hello\r\n"), "unreachable", 1.0),
    "half a head": (then_close(STREAM_HEAD[:40]), "unreachable", 1.0),
}


@pytest.mark.parametrize("mode", [AUTO, STREAMING])
@pytest.mark.parametrize("refusal", NOT_OFFERED.values(), ids=NOT_OFFERED)
async def test_an_upstream_without_streams_is_asked_again_much_later(refusal: Answer, mode: str) -> None:
    """Ten minutes later, or one if a stream must be there. Only in that case the log has it, once."""
    pause = follower_module.NOT_OFFERED_S[mode]
    async with following(refusal, refusal, mode=mode, draw=0.5) as scene:
        await until(lambda: scene.ends == {"not-offered": 1} and scene.clock.sleeping == [5.0])
        assert (scene.notes.is_open, scene.notes.why) == (False, "the upstream offers no stream")
        await until(lambda: sum("Loopback.serve" in repr(task) for task in asyncio.all_tasks()) == 1)  # the poller's connection
        for _ in range(int(pause // 5) - 1):
            await scene.clock.advance(5)
            await until(lambda: scene.clock.sleeping == [5.0])
        assert len(scene.server.asked) == 1
        await scene.clock.advance(5)
        await until(lambda: len(scene.server.asked) == 2)
        await until(lambda: scene.ends == {"not-offered": 2})
        told = [line.level for line in scene.log.lines if line.event == "the upstream is polled without a stream"]
        assert told == [] if mode == AUTO else told in (["warn", "debug"], ["error", "debug"])


@pytest.mark.parametrize(("refusal", "reason", "pause"), PASSING.values(), ids=PASSING)
async def test_a_refusal_that_passes_is_followed_by_another_attempt(refusal: Answer, reason: str, pause: float) -> None:
    """After a pause, or when the upstream has asked for it, within its limit."""
    async with following(refusal) as scene:
        await until(lambda: len(scene.clock.sleeping) == 2)
        assert (scene.ends, sorted(scene.clock.sleeping)) == ({reason: 1}, sorted([5.0, pause]))
        await scene.clock.advance(pause)
        await until(lambda: scene.notes.is_open)
        assert scene.log.at("warn") == []


# ---- tokens, time, ends


async def test_a_new_token_opens_a_new_stream() -> None:
    """The former stream is closed. The new stream says nothing of the documents of the former token."""
    async with following() as scene:
        server = await opened(scene)
        server.features = silence
        scene.upstream.renew("*:development.hidden-too")
        scene.source.renew()
        scene.follower.renew()
        await until(lambda: len(server.asked) == 2 and len(server.streams) == 1 and scene.notes.is_open)
        assert server.asked[1].headers["authorization"].endswith("hidden-too")
        assert "last-event-id" not in server.asked[1].headers
        assert (scene.ends, scene.notes.opened) == ({"renewed": 1}, 2)


async def test_a_new_token_ends_a_pause() -> None:
    """The former token may have been the reason of a refusal."""
    for refusal in (reply(403), reply(429, retry_after="70")):
        async with following(refusal) as scene:
            await until(lambda: sum(scene.ends.values()) == 1)
            await turns()
            scene.follower.renew()
            await until(lambda: scene.notes.is_open)


async def test_a_low_limit_of_staleness_is_kept_beside_a_stream() -> None:
    """The age of the configuration stays below half of it; a change counts at once."""
    async with following() as scene:
        await opened(scene)
        scene.follower.keep_fresh(20)
        await polls(scene, 2)
        assert scene.clock.sleeping == [7.0]
        scene.follower.keep_fresh(20)
        await turns()
        assert len(scene.server.polls) == 2
        scene.follower.keep_fresh(0)
        await scene.clock.advance(1)
        await polls(scene, 3)
        assert scene.clock.sleeping == [CALM_S]


async def test_a_limit_of_staleness_makes_no_poll_rare() -> None:
    """Without a stream the interval stays."""
    async with following(reply(404)) as scene:
        await until(lambda: scene.ends and scene.clock.sleeping == [5.0])
        scene.follower.keep_fresh(100)
        await scene.clock.advance(5)
        await polls(scene, 2)
        assert scene.clock.sleeping == [5.0]


async def test_an_upstream_that_is_back_is_polled_when_its_stream_opens() -> None:
    """After an outage the back-off of polls may be long, and the stream has nothing to tell."""
    async with following() as scene:
        await opened(scene)
        scene.loop.leave()
        await until(lambda: scene.polling.holder.state == State.STALE and len(scene.clock.sleeping) == 2)
        await scene.loop.listen()
        await scene.clock.advance(1.0)
        await until(lambda: scene.polling.holder.state == State.FRESH)
        assert scene.clock.monotonic() == 2.0


@pytest.mark.parametrize("reply_", [None, silence, then_silence(STREAM_HEAD[:50])], ids=["open", "no answer", "half a head"])
async def test_a_stop_waits_for_no_stream(reply_: Answer | None) -> None:
    """Whether it is open or not yet; the connection is closed, and no task is left."""
    async with following(*([] if reply_ is None else [reply_])) as scene:
        await until(lambda: scene.server.asked)
        async with asyncio.timeout(2):
            await scene.stop()
        await until(lambda: not scene.server.streams)


async def test_no_stream_is_asked_for_before_the_upstream_has_answered() -> None:
    """An upstream that is starting has one client, the poller."""
    async with following() as scene:
        scene.server.features = reply(503)
        await until(lambda: scene.server.polls and scene.clock.sleeping)
        await turns()
        assert scene.server.asked == []
