"""Shared by the tests of the HTTP server: a transport in memory, the state of a server, and answers parsed from bytes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.http.server.connection import Connection
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.usage import UsageCounters
from flagsvc.testing import FakeClock, RecordingLog

DOCUMENT: dict[str, Any] = {
    "version": 2,
    "features": [
        {"name": "on", "enabled": True, "strategies": [{"name": "default"}]},
        {"name": "off", "enabled": False, "strategies": [{"name": "default"}]},
    ],
}

KEYED = "authorization: client-key"
Fields = list[tuple[str, str]]


class State:
    """Stands for the state that uvicorn's server keeps of its connections."""

    def __init__(self, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        self.connections: set[object] = set()
        self.tasks: set[asyncio.Task[object]] = set()
        self.total_requests = 0
        self.default_headers = headers or []


class FakeTransport(asyncio.Transport):
    """A transport that records what is written.

    `takes` is how many bytes are sent before the protocol must pause. `quiet` allows what uvicorn's protocol does: writing
    after the end, and pausing twice.
    """

    def __init__(
        self, peer: str | None = "203.0.113.7", *, secure: bool = False, takes: int | None = None, quiet: bool = False
    ) -> None:
        names = {} if peer is None else {"peername": (peer, 50000), "sockname": ("192.0.2.9", 3000)}
        super().__init__({**names, "sslcontext": object() if secure else None})
        self.data = bytearray()
        self.written = asyncio.Event()
        self.writes = 0
        self.reading = True
        self.ended = False
        self.closed = False
        self.aborted = False
        self.unsent = 0
        self.takes = takes
        self.quiet = quiet
        self.protocol: Any = None

    def write(self, data: Any) -> None:
        assert self.quiet or not self.over, "written after the end"
        if self.over:
            return
        self.data += data
        self.writes += 1
        if self.answered():
            self.written.set()
        if self.takes is not None:
            self.count(len(data))

    def writelines(self, parts: Any) -> None:
        """Keep the parts of an answer, a write for each."""
        pausing, self.takes = self.takes, None
        for part in parts:
            self.write(part)
        self.takes = pausing
        if self.takes is not None:
            self.count(sum(len(part) for part in parts))

    def count(self, size: int) -> None:
        """Count written bytes. Above the limit, the protocol must pause."""
        self.unsent += size
        if self.takes is not None and self.unsent > self.takes:
            self.protocol.pause_writing()

    def answered(self) -> bool:
        """Return whether there is more than a word to go on."""
        return bool(self.data) and not self.data.endswith(b"HTTP/1.1 100 Continue\r\n\r\n")

    def take(self) -> None:
        """Take all that was written."""
        self.unsent = 0
        self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.unsent

    @property
    def over(self) -> bool:
        """Whether nothing more can be written."""
        return self.ended or self.closed or self.aborted

    def pause_reading(self) -> None:
        assert self.quiet or self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert self.quiet or not self.reading
        self.reading = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


@dataclass
class ConnectionWithTransport:
    """A connection of the HTTP server with its transport."""

    connection: Connection
    transport: FakeTransport

    def send(self, *pieces: bytes) -> Self:
        """Send bytes, a turn of the loop for each piece."""
        for piece in pieces:
            self.connection.data_received(piece)
            self.connection.shared.writer.flush()
        return self

    def answers(self, *methods: str) -> list[int]:
        """Return the statuses of all answers to these methods; by default GET."""
        return [status for status, _, _ in parse_answers(bytes(self.transport.data), list(methods) or ["GET"])]

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.connection.shared.tick()

    def lose(self) -> None:
        self.connection.connection_lost(None)


def dial(given: Serving, limits: ConnectionLimits | None = None, **transport: Any) -> ConnectionWithTransport:
    """Return a connection to a service, in the running loop; `transport` is for FakeTransport."""
    [line] = open_connections(given, 1, limits, **transport)
    return line


def open_connections(
    given: Serving, number: int, limits: ConnectionLimits | None = None, **transport: Any
) -> list[ConnectionWithTransport]:
    """Return connections of one server. Their answers wait for the end of the turn."""
    make, state = ConnectionFactory(lambda: given.service, limits or ConnectionLimits()), State()
    lines = [ConnectionWithTransport(make(None, state, {}), FakeTransport(**transport)) for _ in range(number)]
    for line in lines:
        line.transport.protocol = line.connection
        line.connection.connection_made(line.transport)
    return lines


def get(target: str = "/proxy", *fields: str) -> bytes:
    """Return a GET with the client key."""
    return head(f"GET {target} HTTP/1.1", KEYED, *fields)


def head(line: str, *fields: str) -> bytes:
    return "\r\n".join([line, "Host: proxy", *fields, "", ""]).encode("latin-1")


def parse_answer(data: bytes, method: str = "GET") -> tuple[int, Fields, bytes, bytes]:
    """Return status, header fields and body of the first answer in `data`, and what follows it; a 100 is passed over."""
    head, end, rest = data.partition(b"\r\n\r\n")
    assert end, f"no whole head: {data[:200]!r}"
    first, *lines = head.split(b"\r\n")
    version, _, told = first.partition(b" ")
    assert version == b"HTTP/1.1", first
    status = int(told[:3])
    if status == 100:
        return parse_answer(rest, method)
    pairs = [line.decode("latin-1").split(": ", 1) for line in lines]
    fields = [(name, value) for name, value in pairs]
    length = next((int(value) for name, value in fields if name == "content-length"), 0)
    size = 0 if method == "HEAD" or status in (204, 304) else length
    assert len(rest) >= size, f"{len(rest)} bytes of {size}"
    return status, fields, rest[:size], rest[size:]


def parse_answers(data: bytes, methods: list[str]) -> list[tuple[int, Fields, bytes]]:
    """Return the answers to requests with these methods. Fails if bytes are left."""
    found = []
    for method in methods:
        status, fields, body, data = parse_answer(data, method)
        found.append((status, fields, body))
    assert data == b"", data[:200]
    return found


@dataclass
class Serving:
    """A service over the real engine, with its log. A closed `gate` holds back every answer.

    `waiting` counts the waiting requests, `left` the cancelled requests.
    """

    service: Service
    log: RecordingLog
    holder: Holder
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    left: int = 0

    async def wait(self, context: Context) -> Context:
        """Hold an answer back."""
        self.waiting += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.left += 1
            raise
        return context


async def take_turns(context: Context) -> Context:
    """Yield to the event loop three times for each character of the user id."""
    for _ in range(len(context.user_id or "") * 3):
        await asyncio.sleep(0)
    return context


def serving(document: object = None, *, slow: bool = False, turns: bool = False, **settings: Any) -> Serving:
    """Return a service for the key `client-key`.

    With `slow` its evaluations wait at a gate, which is closed; with `turns` each takes some turns of the loop.
    """
    holder = Holder()
    compiled = compile_document(DOCUMENT if document is None else document, CompileOptions())
    holder.replace(compiled.snapshot, ConfigurationDocument(b"{}", '"v1"'), 0)
    log, clock = RecordingLog(), FakeClock()
    enrichers: list[Any] = []

    async def enricher(context: Context) -> Context:
        return await made.wait(context)

    if slow:
        enrichers.append(enricher)
    if turns:
        enrichers.append(take_turns)
    service = Service(
        ServiceSettings(client_keys=("client-key",), enable_all_endpoint=True, **{"enricher_timeout": 60_000} | settings),
        holder=holder,
        usage=UsageCounters(lambda: holder.current.names if holder.current else {}, clock.now),
        log=log,
        clock=clock,
        enrichers=enrichers,
        random=Random(1),
    )
    made = Serving(service, log, holder)
    return made
