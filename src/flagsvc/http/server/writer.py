"""Writes answers: the transport of a connection, the encoding of a response, and the answers of one turn together. Compiled.

The part that many answers share (status, date, fixed headers) is encoded once. It is kept until the server's headers change, which
happens once a second.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from mypy_extensions import i64, u8

from flagsvc.http.counts import Traffic
from flagsvc.http.messages import Headers, Response
from flagsvc.http.parts import SEPARATE_BYTES, Parts

# The flow of bytes in.
READING: Final = 0
PAUSED: Final = 1
"""The transport was told to stop reading."""
ENDED: Final = 2
"""The caller sends no more."""

MAX_KEPT: Final = 256
"""The most encoded beginnings that are kept."""

KEEP: Final = b"\r\n"
"""The end of a head on a connection that stays open."""
KEEP_1_0: Final = b"connection: keep-alive\r\n\r\n"
"""The same for HTTP/1.0, where a connection closes unless the answer says otherwise."""
CLOSE: Final = b"connection: close\r\n\r\n"
"""The same on a connection that closes."""

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

MAX_ANSWERS: Final = 32
"""The most answers that wait for others."""
MAX_BYTES: Final = 131_072
"""The most bytes of answers that wait for others."""
SILENCE_MS: Final = 45_000
"""Milliseconds in which the other end of an answer in parts must acknowledge what was sent."""


class Stream:
    """A connection as the writer, the memory budget and the server's clock see it. `Connection` adds HTTP.

    `input` is the state of reading, and `secure` tells whether the connection uses TLS. `paused` tells that the caller does not
    read: `untaken` is the number of unsent bytes when that began, `unsent` the number at the last look. `ready` are answers
    that are not written yet, and `pending` is the size of the request whose answer is being made. `charged` is how many bytes the
    memory budget counts for it. `network` is the caller's network; empty for a peer that forwards requests of many callers.
    `parts` is the body of an answer in parts, which is told when the connection ends; None without one. `traffic` counts the bytes
    that are passed to the transport.
    """

    def __init__(self, traffic: Traffic) -> None:
        self.traffic: Final = traffic
        self.transport: asyncio.Transport | None = None
        self.input: u8 = READING
        self.secure: bool = False
        self.paused: bool = False
        self.ready: bytes = b""
        self.unsent: i64 = 0
        self.untaken: i64 = 0
        self.pending: i64 = 0
        self.charged: i64 = 0
        self.network: bytes = b""
        self.parts: Parts | None = None

    def open_transport(self, transport: asyncio.Transport) -> str:
        """Start with a transport. Returns the address of the other end; empty on a Unix socket."""
        self.transport = transport
        self.secure = transport.get_extra_info("sslcontext") is not None
        peer = transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) and peer else ""

    def local_port(self) -> int:
        """Return the port that the caller has connected to; 0 on a Unix socket, and when the connection has ended."""
        name = None if self.transport is None else self.transport.get_extra_info("sockname")
        return int(name[1]) if isinstance(name, tuple) else 0

    # In

    def pause_reading(self) -> None:
        """Stop reading for now."""
        transport = self.transport
        if transport is not None and self.input == READING:
            self.input = PAUSED
            transport.pause_reading()

    def resume_reading(self) -> None:
        transport = self.transport
        if transport is not None and self.input == PAUSED:
            self.input = READING
            transport.resume_reading()

    # Out

    def flush(self) -> None:
        """Write the ready answers. Without a caller they are dropped."""
        ready = self.ready
        if ready:
            self.ready = b""
            transport = self.transport
            if transport is not None and not transport.is_closing():
                self.traffic.sent += len(ready)
                transport.write(ready)

    def write(self, data: bytes) -> None:
        """Write bytes now, after the ready answers."""
        self.flush()
        if self.transport is not None:
            self.traffic.sent += len(data)
            self.transport.write(data)

    def write_pieces(self, pieces: tuple[bytes, ...]) -> None:
        """Write pieces now, after the ready answers, without copying them together."""
        self.flush()
        if self.transport is not None:
            for piece in pieces:
                self.traffic.sent += len(piece)
            self.transport.writelines(pieces)

    def note_untaken(self) -> None:
        """Note that the caller does not read."""
        self.paused = True
        self.unsent = 0
        self.untaken = self.waiting()

    def note_taken(self) -> None:
        """Note that the caller has read."""
        self.paused = False
        self.untaken = 0

    def took_some(self) -> bool:
        """Return whether the caller has read anything since the last call."""
        before = self.unsent
        self.unsent = self.waiting()
        return self.unsent != before

    def waiting(self) -> int:
        """Return how many bytes wait to be sent."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def notice_silence(self) -> None:
        """Have the system end a connection whose other end is gone: it acknowledges nothing for SILENCE_MS. Only Linux can."""
        transport = self.transport
        found = None if transport is None else transport.get_extra_info("socket")
        if found is not None and found.family in (socket.AF_INET, socket.AF_INET6) and hasattr(socket, "TCP_USER_TIMEOUT"):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_MS)

    # The end

    def lose_parts(self) -> None:
        """Tell an answer in parts that nothing more can be written."""
        parts = self.parts
        if parts is not None:
            self.parts = None
            parts.lose()

    def end_writing(self) -> None:
        """Write the ready answers, then close our half of the connection. TLS has no halves."""
        self.flush()
        transport = self.transport
        if transport is not None and not self.secure and transport.can_write_eof():
            transport.write_eof()

    def close_transport(self) -> None:
        """Close when everything is sent."""
        self.lose_parts()
        self.flush()
        if self.transport is not None:
            self.transport.close()

    def abort_transport(self) -> None:
        """Close at once."""
        self.lose_parts()
        if self.transport is not None:
            self.transport.abort()

    # What an answer in parts, the memory budget and the clock ask for

    def end_parts(self) -> None:
        """End after the last part."""

    def drop_slow_reader(self) -> None:
        """End at once, because the caller does not read the parts of its answer."""

    def free_memory(self) -> None:
        """End, because all connections together hold too much."""

    def check_time(self, now: i64) -> None:
        """End a step that takes too long. `now` is the tick of the clock."""


class ServerState(Protocol):
    """What uvicorn's server keeps of its connections and reads from them.

    Every answer begins with `default_headers`, such as the date. The list is replaced, never changed.
    """

    connections: set[object]
    tasks: set[asyncio.Task[object]]
    total_requests: int
    default_headers: list[tuple[bytes, bytes]]


class Beginning:
    """The encoded beginning of all answers with one status and one list of fixed headers."""

    def __init__(self, status: int, fixed: Headers, data: bytes) -> None:
        self.status = status
        self.fixed = fixed
        self.data = data


class ResponseEncoder:
    """Encodes the answers of one server."""

    def __init__(self, server: ServerState) -> None:
        self.server = server
        self.headers: Headers = []
        self.lines: bytes = b""
        self.kept: dict[int, Beginning] = {}
        self.last: Beginning = Beginning(0, [], b"")

    def encode(self, response: Response, ending: bytes, body: list[bytes]) -> bytes:
        """Return the encoded head of an answer, followed by the pieces of `body`. `ending` is KEEP, KEEP_1_0 or CLOSE."""
        if self.server.default_headers is not self.headers:
            self.update()
        beginning = self.last
        if beginning.fixed is not response.fixed or beginning.status != response.status:
            beginning = self.beginning(response)
        parts = [beginning.data]
        for name, value in response.own:
            parts.append(name)
            parts.append(b": ")
            parts.append(value)
            parts.append(b"\r\n")
        parts.append(ending)
        parts += body
        return b"".join(parts)

    def update(self) -> None:
        """Use the present headers of the server."""
        self.headers = self.server.default_headers
        self.lines = header_lines(self.headers)
        self.kept = {}
        self.last = Beginning(0, [], b"")

    def beginning(self, response: Response) -> Beginning:
        """Return the beginning of an answer, and remember it as the last one."""
        key = id(response.fixed) * 1024 + response.status
        found = self.kept.get(key)
        if found is None:
            data = status_line(response.status) + self.lines + header_lines(response.fixed)
            found = Beginning(response.status, response.fixed, data)
            if len(self.kept) < MAX_KEPT:
                self.kept[key] = found
        self.last = found
        return found


def header_lines(headers: Headers) -> bytes:
    return b"".join([name + b": " + value + b"\r\n" for name, value in headers])


def status_line(status: int) -> bytes:
    """Return the first line of an answer."""
    try:
        phrase = HTTPStatus(status).phrase.encode()
    except ValueError:
        phrase = b""
    return b"HTTP/1.1 " + str(status).encode() + b" " + phrase + b"\r\n"


class ResponseWriter:
    """Writes the answers of one server. `streams` have an answer that is ready; `size` is the number of bytes of all of them.

    All answers of one turn of the event loop are written together, up to a number of answers or bytes. Waking a caller is a large
    part of a request's cost, and a caller with several answers is woken once.
    """

    def __init__(self, server: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self.encoder: Final = ResponseEncoder(server)
        self.loop: Final = loop
        self.streams: list[Stream] = []
        self.size: i64 = 0
        self.scheduled: bool = False
        self.callback: Callable[[], None] = self.flush_scheduled

    def write(self, stream: Stream, response: Response, ending: bytes) -> None:
        """Write an answer at the end of this turn of the event loop, or earlier. `ending` ends its head."""
        if response.pieces is not None:
            self.add_ready(stream, self.encoder.encode(response, ending, response.pieces))
            return
        body = response.body
        if len(body) < SEPARATE_BYTES:
            self.add_ready(stream, self.encoder.encode(response, ending, [body]))
        else:
            stream.write_pieces((self.encoder.encode(response, ending, []), body))

    def add_ready(self, stream: Stream, data: bytes) -> None:
        """Add an answer to a stream, to be flushed at the end of this turn of the event loop, or earlier."""
        stream.ready = stream.ready + data if stream.ready else data
        self.add(stream, len(data))

    def add(self, stream: Stream, size: i64) -> None:
        """Flush a stream at the end of this turn of the event loop, or earlier. It has `size` bytes more than before."""
        self.streams.append(stream)
        self.size += size
        if self.size >= MAX_BYTES or len(self.streams) >= MAX_ANSWERS:
            self.flush()
        elif not self.scheduled:
            self.scheduled = True
            self.loop.call_soon(self.callback)

    def flush(self) -> None:
        """Flush every stream."""
        streams = self.streams
        self.streams = []
        self.size = 0
        for stream in streams:
            stream.flush()

    def flush_scheduled(self) -> None:
        """Flush every stream at the end of a turn of the event loop."""
        self.scheduled = False
        self.flush()
