"""A server on a loopback port that misbehaves as told: it answers with raw bytes, slowly, cut off, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from support.http_servers import Request as Request
from support.processes import free_port

Writer = asyncio.StreamWriter
Behave = Callable[[Request, asyncio.StreamReader, Writer], Awaitable[None]]
Answer = bytes | Behave


def reply(status: int, body: bytes = b"", **headers: str) -> bytes:
    """Return an answer with a length; `content_type` becomes `content-type`."""
    fields = {"content-length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    if status == 304:
        del fields["content-length"]
    lines = [f"HTTP/1.1 {status} Some Words", *(f"{name}: {value}" for name, value in fields.items() if value != "-")]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Loopback:
    """A scriptable server. Each request takes one of `answers`, and the last one stays. `requests` are the received ones."""

    def __init__(self, scheme: str, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] = [reply(200, b"{}")]
        self.connections = 0
        self.port = 0
        self._scheme = scheme
        self._tls = tls
        self._running: asyncio.Server | None = None
        self._writers: set[Writer] = set()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def script(self, *answers: Answer) -> None:
        self.answers[:] = answers

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """Answer the requests of one connection until it ends or an answer closes it."""
        self.connections += 1
        self._writers.add(writer)
        try:
            await self._answer_all(reader, writer)
        finally:
            writer.close()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            while not writer.is_closing():
                request = await read_request(reader)
                self.requests.append(request)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(request, reader, writer)

    async def listen(self) -> None:
        """Take connections, always at the same port. No other program is given that port meanwhile."""
        self.port = self.port or free_port()
        self._running = await asyncio.start_server(self.serve, "127.0.0.1", self.port, ssl=self._tls)

    def leave(self) -> None:
        if self._running is not None:
            self._running.close()
        self.end()

    def end(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


async def read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Request(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))


@asynccontextmanager
async def loopback(tls: ssl.SSLContext | None = None) -> AsyncIterator[Loopback]:
    """Run a server on a free port until the block ends."""
    server = Loopback("https" if tls else "http", tls)
    await server.listen()
    try:
        yield server
    finally:
        server.leave()
        await asyncio.sleep(0)


def then_close(content: bytes) -> Behave:
    async def behave(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(content)
        await writer.drain()
        writer.close()

    return behave


def then_reset(content: bytes = b"") -> Behave:
    """Write, if anything, and break the connection without a farewell."""

    async def behave(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
        if content:
            writer.write(content)
            await writer.drain()
        at_once = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writer.transport.abort()

    return behave


def drip(content: bytes, pause: float) -> Behave:
    """Write a byte at a time, and pause after each byte."""

    async def behave(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
        for at in range(len(content)):
            writer.write(content[at : at + 1])
            await writer.drain()
            await asyncio.sleep(pause)

    return behave


async def silence(_: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
    """Say nothing until the other side gives up."""
    await reader.read()
    writer.close()


async def tunnel(request: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
    """Connect through, as an outbound proxy does for https."""
    host, _, port = request.target.rpartition(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    with contextlib.suppress(OSError):
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: Writer) -> None:
    """Hand on bytes until there are no more."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
