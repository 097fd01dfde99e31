"""A flag server with streams of changes, for the scripted server of `loopback`, and a proxy's poller that follows it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from flagsvc.proxy.configuration.follower import StreamFollower
from flagsvc.proxy.configuration.sources import HttpSource, event_id_of
from flagsvc.proxy.configuration.stream_notes import StreamNotes
from flagsvc.proxy.upstream import Upstream
from flagsvc.settings.rows.upstream import AUTO
from flagsvc.testing import FakeClock, RecordingLog
from support.loopback import Answer, Loopback, Request, Writer, loopback, reply
from support.polling import ONE, PollerScene
from support.upstream_session import options

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def event(name: str, event_id: str, data: str = '{"events":[]}') -> bytes:
    return f"event: {name}\nid: {event_id}\ndata: {data}\n\n".encode()


def etag_of(body: bytes, revision: int = 1) -> str:
    """Return the ETag that our flag server gives a document."""
    return f'"{hashlib.sha256(body).hexdigest()[:16]}:{revision}:v1"'


def id_of(body: bytes) -> str:
    """Return the id of the event that announces a document."""
    return event_id_of(etag_of(body))


class StreamingServer:
    """A flag server. It serves `body`, with the ETag that `etag_of` gives it.

    `replies` are its answers to the next requests for a stream, instead of one. `polls` counts requests for documents, and `asked`
    requests for streams. `streams` are open.
    """

    def __init__(self, server: Loopback) -> None:
        self.body = ONE
        self.etag_of: Callable[[bytes], str] = etag_of
        self.features: Answer | None = None
        self.replies: list[Answer] = []
        self.polls: list[Request] = []
        self.asked: list[Request] = []
        self.streams: list[Writer] = []
        server.script(self.answer)

    async def answer(self, request: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
        if request.path.endswith("/streaming"):
            self.asked.append(request)
            given = self.replies.pop(0) if self.replies else self.stream
        else:
            self.polls.append(request)
            given = self.features or self.serve
        if isinstance(given, bytes):
            writer.write(given)
        else:
            await given(request, reader, writer)

    async def serve(self, request: Request, _: asyncio.StreamReader, writer: Writer) -> None:
        etag = self.etag_of(self.body)
        is_known = request.headers.get("if-none-match") == etag
        writer.write(reply(304, etag=etag) if is_known else reply(200, self.body, etag=etag))

    async def stream(self, _: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
        """Keep a stream open until the other side closes it."""
        writer.write(STREAM_HEAD + chunk(b": hello\n\n"))
        self.streams.append(writer)
        try:
            await reader.read()
        finally:
            self.streams.remove(writer)

    def send(self, content: bytes) -> None:
        for writer in self.streams:
            writer.write(chunk(content))

    def change(self, body: bytes) -> None:
        """Serve another document, and tell."""
        self.body = body
        self.send(event("unleash-updated", id_of(body)))


class FollowScene:
    """A poller with a follower, and the server that they ask."""

    def __init__(self, loop: Loopback, server: StreamingServer, *, mode: str = AUTO, draw: float = 0.0, **more: Any) -> None:
        self.clock, self.log = FakeClock(), RecordingLog()
        self.loop, self.server = loop, server
        self.upstream = Upstream(options(f"{loop.url}/api", **more), clock=self.clock, log=self.log)
        self.source = HttpSource(self.upstream, self.clock)
        self.polling = PollerScene(self.source, clock=self.clock, log=self.log)
        self.follower = StreamFollower(
            self.upstream, self.source, self.polling.holder, mode=mode, clock=self.clock, log=self.log, draw=lambda: draw
        )

    @property
    def notes(self) -> StreamNotes:
        return self.polling.holder.stream

    @property
    def ends(self) -> dict[str, int]:
        return {reason: count for reason, count in self.notes.ends.items() if count}

    def start(self) -> None:
        self.polling.poller.start()
        self.follower.start()

    async def stop(self) -> None:
        await asyncio.gather(self.polling.poller.stop(), self.follower.stop())
        await self.upstream.aclose()


@asynccontextmanager
async def following(*replies: Answer, **more: Any) -> AsyncIterator[FollowScene]:
    """Run a poller and a follower. The server answers the first requests for a stream with these replies."""
    before = asyncio.all_tasks()
    async with loopback() as server:
        scripted = StreamingServer(server)
        scripted.replies.extend(replies)
        scene = FollowScene(server, scripted, **more)
        scene.start()
        try:
            yield scene
        finally:
            await scene.stop()
            assert scene.clock.sleeping == []
            assert scene.follower.restarts == scene.polling.poller.restarts == 0, scene.log.lines
            told = str([(line.event, line.fields) for line in scene.log.lines])
            assert "hidden" not in told, told
    await asyncio.sleep(0)
    assert {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)} == set()
