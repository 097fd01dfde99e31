"""Answers in parts: chunks over time, bounded for slow readers, and over with their connection (decision 0032)."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import pytest

from flagsvc.http.call import Call
from flagsvc.http.messages import Response
from flagsvc.http.parts import SEPARATE_BYTES, Parts, PartsResponse
from flagsvc.http.reached_limits import WRITE_TIME
from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.http.server.asgi import MAX_WAITING, AsgiApp
from flagsvc.testing import turns
from support.frontkit import ConnectionWithTransport, FakeTransport, State, head
from unit.http.server.test_framing import Admitting

ASKED = head("GET /stream HTTP/1.1")
IDLE_BYTES = 16_384
"""The most bytes of an idle stream, with its connection."""


class Recorded(Parts):
    """Parts that count their ends."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = 0

    def on_open(self) -> None:
        self.send(b"first;")

    def on_end(self) -> None:
        self.ends += 1


class Streaming(Admitting):
    """Answers every request in parts, later; `made` has them."""

    def __init__(self) -> None:
        super().__init__(later=True)
        self.made: list[Recorded] = []

    async def respond(self) -> Response:
        self.made.append(Recorded())
        return PartsResponse(200, [(b"content-type", b"text/plain")], [], self.made[-1])

    def answer(self, call: Call, body: bytes) -> Any:
        return self.respond()


class Scene:
    """Connections of one server to a contract that answers in parts."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.contract = Streaming()
        self.state: Any = State()
        self.factory = ConnectionFactory(lambda: self.contract, limits or ConnectionLimits())

    def dial(self, **transport: Any) -> ConnectionWithTransport:
        line = ConnectionWithTransport(self.factory(None, self.state, {}), FakeTransport(**transport))
        line.transport.protocol = line.connection
        line.connection.connection_made(line.transport)
        return line

    async def stream(self, asked: bytes = ASKED, **transport: Any) -> tuple[ConnectionWithTransport, Recorded]:
        """Return a connection that has got the first part, and its parts."""
        line = self.dial(**transport).send(asked)
        await turns()
        return line, self.contract.made[-1]


def body_of(line: ConnectionWithTransport) -> bytes:
    return bytes(line.transport.data).partition(b"\r\n\r\n")[2]


async def test_chunks_come_when_they_are_sent_and_the_end_is_told() -> None:
    """HTTP/1.1 gets chunks and the last one; the connection closes after it. An empty part is no end."""
    line, parts = await Scene().stream()
    assert b"transfer-encoding: chunked\r\n" in line.transport.data and b"connection: close" in line.transport.data
    assert b"content-length" not in line.transport.data
    assert body_of(line) == b"6\r\nfirst;\r\n" and not line.transport.over
    parts.send(b"")
    parts.send(b"x" * 26)
    assert body_of(line).endswith(b"1a\r\n" + b"x" * 26 + b"\r\n")
    parts.end()
    assert body_of(line).endswith(b"0\r\n\r\n") and line.transport.closed and parts.ends == 1
    parts.send(b"late")
    parts.end()
    assert parts.ends == 1


async def test_a_long_part_is_a_chunk_without_a_copy() -> None:
    """All callers share the bytes of a long part while they wait to be sent."""
    line, parts = await Scene().stream()
    long, before = b"x" * SEPARATE_BYTES, len(body_of(line))
    pieces: list[bytes] = []
    write = line.transport.write

    def keep(data: bytes) -> None:
        pieces.append(data)
        write(data)

    line.transport.write = keep  # type: ignore[method-assign]
    parts.send(long)
    assert body_of(line)[before:] == b"10000\r\n" + long + b"\r\n" and any(each is long for each in pieces)


async def test_old_http_gets_plain_bytes() -> None:
    """HTTP/1.0 knows no chunks, so the end of the connection ends the body."""
    line, parts = await Scene().stream(head("GET /stream HTTP/1.0", "Connection: keep-alive"))
    parts.end()
    assert b"transfer-encoding" not in line.transport.data
    assert body_of(line) == b"first;" and line.transport.closed


@pytest.mark.parametrize("how", ["lost", "ends its half", "closed by memory", "sends too much"])
async def test_the_end_of_the_connection_ends_the_stream_at_once(how: str) -> None:
    """The program knows it in the same turn, and nothing is written afterwards."""
    line, parts = await Scene(ConnectionLimits(lingered=10)).stream()
    if how == "lost":
        line.lose()
    elif how == "ends its half":
        assert line.connection.eof_received() is False
    elif how == "closed by memory":
        line.connection.free_memory()
    else:
        line.send(b"GET / HTTP/1.1\r\n")
    written = bytes(line.transport.data)
    assert parts.ends == 1 and parts.outlet is None
    parts.send(b"late")
    assert bytes(line.transport.data) == written


async def test_a_slow_reader_is_dropped() -> None:
    """When the transport is full, the next part drops the caller. One that reads again in time goes on."""
    scene = Scene()
    line, parts = await scene.stream(takes=1000)
    parts.send(b"y" * 1000)
    assert line.connection.paused and not line.transport.over and parts.outlet is not None
    assert parts.outlet.waiting() == line.transport.get_write_buffer_size() > 0
    line.transport.take()
    assert parts.outlet.waiting() == 0
    parts.send(b"z" * 1000)
    assert parts.ends == 0
    parts.send(b"more")
    assert line.transport.aborted and parts.ends == 1 and scene.contract.reached.counts[WRITE_TIME] == 1
    other, others = await scene.stream(takes=1000)
    others.send(b"y" * 1000)
    other.tick(70)
    assert other.transport.aborted and others.ends == 1, "without a further part, the write timeout does it"


async def test_an_idle_stream_is_no_request_under_way() -> None:
    """No time limit ends it, no budget counts it, and no task waits for it."""
    scene = Scene()
    line, parts = await scene.stream()
    line.tick(1000)
    assert not line.transport.over and parts.ends == 0
    assert not scene.state.tasks and line.connection.charged == 0 and line.connection.pending == 0


@pytest.mark.parametrize("how", ["drain", "shutdown"])
async def test_a_process_that_ends_does_not_wait_for_streams(how: str) -> None:
    """Every stream ends in order and at once, a slow one without; a new one is over after its beginning."""
    scene = Scene()
    streams = [await scene.stream(takes=None if index else 100) for index in range(20)]
    streams[0][1].send(b"y" * 200)
    if how == "drain":
        scene.factory.drain()
    else:
        for line, _ in streams:
            line.connection.shutdown()
    assert all(parts.ends == 1 for _, parts in streams) and streams[0][0].transport.aborted
    assert all(line.transport.closed and body_of(line).endswith(b"0\r\n\r\n") for line, _ in streams[1:])
    late, parts = await scene.stream()
    assert late.transport.closed and parts.ends == 1 and body_of(late).endswith(b"0\r\n\r\n")


async def test_a_caller_that_goes_before_the_head_opens_nothing() -> None:
    """Its parts are never opened, so a program that counts them at their opening counts right."""
    scene = Scene()
    line = scene.dial().send(ASKED)
    line.lose()
    await turns()
    assert all(parts.outlet is None and parts.ends == 0 for parts in scene.contract.made)


@pytest.mark.parametrize("seed", range(20))
async def test_any_order_of_events(seed: int) -> None:
    """Whatever happens in which order: the parts end once, and what was written is a beginning of whole chunks."""
    draw, scene = random.Random(seed), Scene()
    for _ in range(20):
        line, parts = await scene.stream(takes=draw.choice([None, 300]))
        events: list[Callable[[], object]] = [
            partial(parts.send, draw.randbytes(draw.randrange(200))),
            partial(line.connection.data_received, b"GET / HTTP/1.1\r\n\r\n"),
            line.tick,
            parts.end,
            line.lose,
            line.connection.shutdown,
        ]
        for event in draw.choices(events, [10, 2, 2, 1, 1, 1], k=10):
            event()
            if line.connection.transport is None:
                break
        line.lose()
        rest = body_of(line)
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            assert rest[int(size, 16) :][:2] == b"\r\n"
            rest = rest[int(size, 16) + 2 :]
        assert parts.ends == 1 and parts.outlet is None


async def test_an_idle_stream_takes_little_memory() -> None:
    """Many of them together, with their connections and the transports of this test."""
    scene = Scene()
    await scene.stream()
    gc.collect()
    tracemalloc.start()
    try:
        streams = [await scene.stream() for _ in range(256)]
        gc.collect()
        each = tracemalloc.get_traced_memory()[0] / len(streams)
    finally:
        tracemalloc.stop()
    print(f"{each:.0f} bytes")
    assert each < IDLE_BYTES


class Mounted:
    """An ASGI server around one request."""

    def __init__(self) -> None:
        self.contract = Streaming()
        self.sent: list[Any] = []
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.sent.append(message)

    async def start(self) -> tuple[asyncio.Task[None], Recorded]:
        """Return the task that answers, and its parts."""
        scope = {"type": "http", "method": "GET", "path": "/stream", "query_string": b"", "headers": []}
        task = asyncio.ensure_future(AsgiApp(self.contract, AsyncMock(), AsyncMock())(scope, self.receive, self.send))
        await turns()
        return task, self.contract.made[0]


async def test_mounted_in_another_server() -> None:
    """The parts are messages, and the last one ends the body."""
    scene = Mounted()
    task, parts = await scene.start()
    parts.send(b"second;")
    parts.end()
    await task
    assert [each.get("body") for each in scene.sent] == [None, b"first;", b"second;", b""]
    assert parts.ends == 1 and not scene.sent[-1].get("more_body")


async def test_mounted_a_caller_goes_or_does_not_read() -> None:
    """The stream ends at once when the server tells that the caller has gone, and when too much waits."""
    scene = Mounted()
    task, parts = await scene.start()
    scene.gone.set()
    await task
    assert parts.ends == 1
    slow = Mounted()
    task, parts = await slow.start()
    slow.reads.clear()
    outlet = parts.outlet
    assert outlet is not None and outlet.waiting() == 0
    for number in range(4):
        parts.send(b"x" * MAX_WAITING)
        assert number > 1 or outlet.waiting() == (number + 1) * MAX_WAITING
    assert parts.ends == 1 and parts.outlet is None
    slow.reads.set()
    await task


async def test_the_lifespan_of_a_mounted_application() -> None:
    """Each event has its step, and the answer tells that the step is done, or why it failed."""
    startup, shutdown = AsyncMock(), AsyncMock(side_effect=OSError("no disk"))
    receive = AsyncMock(side_effect=[{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    send = AsyncMock()
    await AsgiApp(Streaming(), startup, shutdown)({"type": "lifespan"}, receive, send)
    startup.assert_awaited_once_with()
    assert [each.args[0] for each in send.await_args_list] == [
        {"type": "lifespan.startup.complete"},
        {"type": "lifespan.shutdown.failed", "message": "no disk"},
    ]
