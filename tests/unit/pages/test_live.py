"""Event streams of live pages: bounded in number, kept alive by one timer, over with session or server (decision 0032)."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.http.answers import Answer, respond
from flagsvc.http.call import Call
from flagsvc.http.messages import GET, HEAD, HttpError, Request
from flagsvc.http.parts import Outlet, Parts, PartsResponse
from flagsvc.pages import live
from flagsvc.pages.live import BEGIN, HEARTBEAT, MAX_OF_ONE, MAX_STREAMS, EventStream, EventStreams
from support.aio import until


class Caller(Outlet):
    """One who reads everything; `sent` is what came."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.sent = b""
        self.ended = False

    def write(self, data: bytes) -> None:
        """Read."""
        self.sent += data

    def end(self) -> None:
        """Note the end."""
        self.ended = True
        self.parts.lose()


def open_stream(stream: EventStream) -> Caller:
    """Open a stream as a transport does."""
    caller = Caller(stream)
    stream.open(caller)
    return caller


async def test_the_timer_runs_only_while_a_stream_is_open() -> None:
    """One timer beats for all streams; it begins with the first one and stops with the last one."""
    streams = EventStreams(beat_s=0.001)
    first, second = open_stream(streams.make(lambda: True)), open_stream(streams.make(lambda: True))
    await until(lambda: HEARTBEAT in first.sent and HEARTBEAT in second.sent)
    assert first.sent.startswith(BEGIN)
    first.parts.lose()
    assert (streams.is_beating, streams.count) == (True, 1)
    second.parts.lose()
    assert (streams.is_beating, streams.count) == (False, 0)


async def test_there_is_a_limit() -> None:
    """Above the limit a caller gets a 503 with a text; a stream that was admitted before and opens later ends at once."""
    streams = EventStreams()
    late = streams.make(lambda: True)
    callers = [open_stream(streams.make(lambda: True)) for _ in range(MAX_STREAMS)]
    with pytest.raises(HttpError, match="256 pages are open") as refused:
        streams.make(lambda: True)
    assert refused.value.status == 503 and open_stream(late).ended
    callers[0].parts.lose()
    assert not open_stream(streams.make(lambda: True)).ended and streams.count == MAX_STREAMS
    streams.end_all()
    assert all(each.ended for each in callers[1:]) and streams.count == 0 and not streams.is_beating


async def test_one_viewer_does_not_take_all() -> None:
    """A viewer holds MAX_OF_ONE streams; a further one is a 503 with a text. Others get theirs, and so does who closes a page."""
    streams = EventStreams()
    late = streams.make(lambda: True, "ada")
    callers = [open_stream(streams.make(lambda: True, "ada")) for _ in range(MAX_OF_ONE)]
    with pytest.raises(HttpError, match=f"{MAX_OF_ONE} of your pages are open") as refused:
        streams.make(lambda: True, "ada")
    assert refused.value.status == 503 and open_stream(late).ended
    assert not any(each.ended for each in callers), "no page that is live loses its stream"
    assert not open_stream(streams.make(lambda: True, "bob")).ended
    callers[0].parts.lose()
    assert not open_stream(streams.make(lambda: True, "ada")).ended and streams.count == MAX_OF_ONE + 1
    streams.end_all()


async def test_a_stream_ends_with_its_session() -> None:
    """Each beat ends the streams whose viewers may no longer see the page; the others stay."""
    streams, signed_out = EventStreams(beat_s=0.001), asyncio.Event()
    one, two = open_stream(streams.make(lambda: not signed_out.is_set())), open_stream(streams.make(lambda: True))
    signed_out.set()
    await until(lambda: one.ended)
    assert not two.ended and streams.count == 1
    streams.end_all()


async def test_announcements_come_from_any_thread_and_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is sent at once. Of more with the same name soon after, the last one is; without a stream nothing happens."""
    monkeypatch.setattr(live, "MERGE_S", 0.1)
    streams = EventStreams()
    streams.announce("revision", {"revision": 1})
    caller = open_stream(streams.make(lambda: True))
    await asyncio.to_thread(streams.announce, "revision", {"revision": 2})
    await until(lambda: caller.sent.endswith(b'event: revision\ndata: {"revision":2}\n\n'))
    known = len(caller.sent)
    for number in (3, 4):
        streams.announce("revision", {"revision": number})
    streams.announce("arrived", {})
    await until(lambda: b"arrived" in caller.sent)
    assert caller.sent[known:] == b'event: revision\ndata: {"revision":4}\n\nevent: arrived\ndata: {}\n\n'
    await until(lambda: not streams._pausing)
    known = len(caller.sent)
    streams.announce("revision", {"revision": 5})
    await asyncio.sleep(0)
    assert caller.sent[known:] == b'event: revision\ndata: {"revision":5}\n\n', "at once after a pause"
    streams.end_all()


def test_after_the_loop_nothing_is_announced() -> None:
    """A change that is noticed after the event loop has ended raises no error."""
    streams = EventStreams()

    async def leave_open() -> None:
        open_stream(streams.make(lambda: True))

    asyncio.run(leave_open())
    streams.announce("revision", {})


def test_head_gets_a_plain_answer() -> None:
    """HEAD has the same headers, and opens no stream."""
    streams = EventStreams()
    plain, opened = (
        respond(Call(Request(method, b"/", b"", [])), Answer(headers=live.HEADERS, parts=streams.make(lambda: True)))
        for method in (HEAD, GET)
    )
    assert plain.headers() == opened.headers() and (b"content-type", b"text/event-stream") in plain.headers()
    assert isinstance(opened, PartsResponse) and not isinstance(plain, PartsResponse)
