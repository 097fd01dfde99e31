"""The contract over the front: one connection, fed with bytes, that writes into memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.proxy.api.service import Service
from support.frontkit import FakeTransport, State, parse_answer

NO_PATH = "http://proxy"
"""A target without a path."""

if TYPE_CHECKING:
    from support.wirekit import Answer, PendingRequest


def through_front(service: Service, asked: PendingRequest) -> Answer:
    """Put the request to a connection of the front, without a socket."""
    return asyncio.run(ask(service, asked))


async def ask(service: Service, asked: PendingRequest) -> Answer:
    """Send the request piece by piece, until there is an answer; return it."""
    from support.wirekit import GONE, SECONDS, Answer

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
