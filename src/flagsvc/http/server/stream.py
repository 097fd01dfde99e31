"""A connection's transport: what is written, whether the caller reads it, and whether bytes are read. Compiled."""

from __future__ import annotations

import asyncio
from typing import Final

from mypy_extensions import i64, u8

from flagsvc.http.parts import Parts

# The flow of bytes in.
READING: Final = 0
PAUSED: Final = 1
"""The transport was told to stop reading."""
ENDED: Final = 2
"""The caller sends no more."""


class Stream:
    """A connection as the writer, the memory budget and the server's clock see it. `Connection` adds HTTP.

    `input` is the state of reading, and `secure` tells whether the connection uses TLS. `paused` tells that the caller does not
    read: `untaken` is the number of unsent bytes when that began, `unsent` the number at the last look. `ready` are answers
    that are not written yet, and `pending` is the size of the request whose answer is being made. `charged` is how many bytes the
    memory budget counts for it. `network` is the caller's network; empty for a peer that forwards requests of many callers.
    `parts` is the body of an answer in parts, which is told when the connection ends; None without one.
    """

    def __init__(self) -> None:
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

    # In

    def pause_reading(self) -> None:
        """Stop reading for now."""
        transport = self.transport
        if transport is not None and self.input == READING:
            self.input = PAUSED
            transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        transport = self.transport
        if transport is not None and self.input == PAUSED:
            self.input = READING
            transport.resume_reading()

    # Out

    def flush(self) -> None:
        """Write the ready answers. For a caller that has gone they are dropped."""
        ready = self.ready
        if ready:
            self.ready = b""
            transport = self.transport
            if transport is not None and not transport.is_closing():
                transport.write(ready)

    def write(self, data: bytes) -> None:
        """Write bytes now, after the ready answers."""
        self.flush()
        if self.transport is not None:
            self.transport.write(data)

    def write_both(self, head: bytes, body: bytes) -> None:
        """Write a head and its body now, after the ready answers, without copying them together."""
        self.flush()
        if self.transport is not None:
            self.transport.writelines((head, body))

    def note_untaken(self) -> None:
        """Note that the caller does not read."""
        self.paused = True
        self.unsent = 0
        if self.transport is not None:
            self.untaken = self.transport.get_write_buffer_size()

    def note_taken(self) -> None:
        """Note that the caller has read."""
        self.paused = False
        self.untaken = 0

    def took_some(self) -> bool:
        """Return whether the caller has read anything since the last call."""
        before = self.unsent
        if self.transport is not None:
            self.unsent = self.transport.get_write_buffer_size()
        return self.unsent != before

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
