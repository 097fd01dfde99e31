"""Shared by the tests of the wire: a proxy over the real engine, and clients.

A transport takes a service and a request and returns the answer as it was sent. Every test of the wire runs over all of
`TRANSPORTS`: plain ASGI, and our HTTP server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.strategies import CustomStrategy
from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.extensions import ContextEnricher
from flagsvc.proxy.usage import UsageCounters
from flagsvc.testing import FakeClock, RecordingLog
from support.frontkit import FakeTransport, State, parse_answer

KEY = "client-key"
TOKEN = "server-token"
PEER = "203.0.113.7"
SECONDS = 20.0
NO_PATH = "http://proxy"
"""A target without a path."""

DOCUMENT: dict[str, Any] = {
    "version": 2,
    "features": [
        {"name": "on", "enabled": True, "impressionData": True, "strategies": [{"name": "default"}]},
        {"name": "off", "enabled": False, "strategies": [{"name": "default"}]},
        {
            "name": "varied",
            "enabled": True,
            "strategies": [{"name": "default"}],
            "variants": [{"name": "blue", "weight": 1000, "payload": {"type": "string", "value": "sea"}}],
        },
    ],
}


def asking(field_name: str, operator: str, *values: str, name: str = "asked") -> dict[str, Any]:
    """Return a toggle that is on if a constraint on one context field holds. It shows the evaluated context."""
    key = {"value": values[0]} if operator.startswith(("NUM", "DATE")) else {"values": list(values)}
    constraint = {"contextName": field_name, "operator": operator, **key}
    return {"name": name, "enabled": True, "strategies": [{"name": "default", "constraints": [constraint]}]}


@dataclass(frozen=True)
class Answer:
    """An answer as it left the proxy."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the value of a header that may appear once; None if it is missing."""
        found = [value for each, value in self.fields if each == name.lower()]
        assert len(found) <= 1, f"{name} is there {len(found)} times"
        return found[0] if found else None

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def names(self) -> list[str]:
        return [toggle["name"] for toggle in self.json()["toggles"]]


GONE = Answer(0, [], b"")
"""The answer to a caller that left before its body was complete: nothing."""


@dataclass
class PendingRequest:
    """A request on its way: `chunks` are the pieces its body comes in; `taken` counts those that were fetched.

    `gone` tells that the caller leaves before its body is there.
    """

    method: str
    target: str
    headers: list[tuple[str, str]]
    chunks: Sequence[bytes] = ()
    peer: str | None = PEER
    root: str = ""
    gone: bool = False
    taken: int = 0


Transport = Callable[[Service, PendingRequest], Answer]
"""A way to put a request to a service; it returns the answer."""


def application(service: Service) -> AsgiApp:
    return AsgiApp(service, nothing, nothing)


async def call(app: Any, asked: PendingRequest) -> Answer:
    """Play an ASGI server for one request; checks that the application keeps ASGI's rules."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if asked.gone:
            return {"type": "http.disconnect"}
        if asked.taken >= max(1, len(asked.chunks)):
            await asyncio.Event().wait()  # the caller stays
        body = asked.chunks[asked.taken] if asked.chunks else b""
        asked.taken += 1
        return {"type": "http.request", "body": body, "more_body": asked.taken < len(asked.chunks)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope_of(asked), receive, send)
    if asked.gone:
        assert sent == []
        return GONE
    start, *rest = sent
    assert start["type"] == "http.response.start"
    assert [each["type"] for each in rest] == ["http.response.body"]
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
    assert all(name == name.lower() for name, _ in fields)
    return Answer(start["status"], fields, rest[0]["body"])


def scope_of(asked: PendingRequest) -> dict[str, Any]:
    path, _, query = asked.target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": asked.root + path,
        "raw_path": (asked.root + path).encode("latin-1"),
        "root_path": asked.root,
        "query_string": query.encode("latin-1"),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in asked.headers],
        "client": None if asked.peer is None else (asked.peer, 50000),
        "server": ("127.0.0.1", 3000),
    }


async def ask_front(service: Service, asked: PendingRequest) -> Answer:
    """Send the request to a connection of our HTTP server piece by piece, without a socket, until there is an answer; return it."""
    transport = FakeTransport(asked.peer)
    connection = ConnectionFactory(lambda: service, ConnectionLimits())(None, State(), {})
    connection.connection_made(transport)
    for piece in pieces(asked):
        connection.data_received(piece)
        connection.shared.writer.flush()
        if transport.answered():
            break
        await asyncio.sleep(0)
    if asked.gone:
        connection.connection_lost(ConnectionResetError())
        assert transport.data == b""
        return GONE
    async with asyncio.timeout(SECONDS):
        await transport.written.wait()
    status, fields, body, rest = parse_answer(bytes(transport.data), asked.method)
    assert rest == b""
    connection.connection_lost(None)
    return Answer(status, fields, body)


def pieces(asked: PendingRequest) -> Iterator[bytes]:
    """Give what goes over the connection, the body as it is asked for; `taken` counts its pieces."""
    fields = [f"{name}: {value}" for name, value in asked.headers]
    host = () if any(name.lower() == "host" for name, _ in asked.headers) else ("Host: proxy",)
    lines = [f"{asked.method} {asked.target or NO_PATH} HTTP/1.1", *host, *fields, "", ""]
    yield "\r\n".join(lines).encode("latin-1")
    if asked.gone:
        return
    chunked = any(name.lower() == "transfer-encoding" for name, _ in asked.headers)
    for chunk in asked.chunks:
        asked.taken += 1
        if chunk or not chunked:
            yield b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk
    if chunked:
        yield b"0\r\n\r\n"


TRANSPORTS: dict[str, Transport] = {
    "asgi": lambda service, asked: asyncio.run(asyncio.wait_for(call(application(service), asked), SECONDS)),
    "front": lambda service, asked: asyncio.run(ask_front(service, asked)),
}
"""Every way the contract is served."""


async def nothing() -> None:
    """Measuring for a start and a stop that need nothing."""


@dataclass
class Wire:
    """A proxy with its counters, log, clock and holder."""

    transport: Transport
    service: Service
    holder: Holder
    usage: UsageCounters
    log: RecordingLog
    clock: FakeClock
    last: PendingRequest | None = None

    @property
    def app(self) -> AsgiApp:
        return application(self.service)

    def ask(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | Iterable[tuple[str, str]] = (),
        *,
        key: str | None = KEY,
        body: bytes | object = b"",
        chunks: Sequence[bytes] | None = None,
        peer: str | None = PEER,
        root: str = "",
        gone: bool = False,
    ) -> Answer:
        """Return the answer to a request. `body` is bytes or becomes JSON; `chunks` sends it without a Content-Length."""
        given = list(headers.items() if isinstance(headers, dict) else headers)
        if key is not None:
            given.append(("authorization", key))
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if chunks is not None:
            given.append(("transfer-encoding", "chunked"))
        elif content and not any(name.lower() == "content-length" for name, _ in given):
            given.append(("content-length", str(len(content))))
        pieces = list(chunks) if chunks is not None else [content] if content else []
        self.last = PendingRequest(method, target, given, pieces, peer, root, gone)
        return self.transport(self.service, self.last)

    def get(self, target: str, headers: dict[str, str] | None = None, **more: Any) -> Answer:
        return self.ask("GET", target, headers or {}, **more)

    def post(self, target: str, body: object, headers: dict[str, str] | None = None, **more: Any) -> Answer:
        return self.ask("POST", target, {"content-type": "application/json", **(headers or {})}, body=body, **more)

    def pass_s(self, seconds: float) -> None:
        asyncio.run(self.clock.advance(seconds))

    def serve(self, document: object, strategies: dict[str, CustomStrategy] | None = None) -> None:
        compiled = compile_document(document, CompileOptions(custom_strategies=strategies or {}))
        raw = json.dumps(document).encode()
        odd = sum(each.served for each in compiled.problems)
        self.holder.replace(compiled.snapshot, ConfigurationDocument(raw, '"v1"'), len(compiled.problems) - odd, odd)

    def counted(self) -> dict[str, tuple[int, int, dict[str, int]]]:
        """Return the counts so far, and forget them."""
        bucket = self.usage.drain()
        toggles = {} if bucket is None else bucket.toggles
        return {name: (tally.yes, tally.no, tally.variants) for name, tally in toggles.items()}


Opener = Callable[..., Wire]
"""Opens a Wire: `document` (None: not ready), `enrichers`, `strategies`, `log`, and any field of ServiceSettings."""


def open_wire(
    transport: Transport,
    *,
    document: object = DOCUMENT,
    enrichers: Sequence[ContextEnricher] = (),
    strategies: dict[str, CustomStrategy] | None = None,
    **settings: Any,
) -> Wire:
    """Return a proxy with these settings over this transport."""
    holder = Holder()
    clock, log = FakeClock(), RecordingLog()
    usage = UsageCounters(lambda: holder.current.names if holder.current else {}, clock.now)
    given = {"client_keys": (KEY,), "server_tokens": (TOKEN,), "custom_strategies": tuple(strategies or ()), **settings}
    service = Service(
        ServiceSettings(**given), holder=holder, usage=usage, log=log, clock=clock, enrichers=enrichers, random=Random(1)
    )
    wire = Wire(transport, service, holder, usage, log, clock)
    if document is not None:
        wire.serve(document, strategies)
    return wire
