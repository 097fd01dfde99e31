"""The transport's side of a connection: what is written and whether it is taken, and whether bytes are read. Compiled."""

from __future__ import annotations

import asyncio
from typing import Final

from mypy_extensions import i64, u8

# The flow of bytes in.
READING: Final = 0
PAUSED: Final = 1
"""The transport was told to read no more."""
ENDED: Final = 2
"""The caller sends no more."""


class Stream:
    """A connection as the writer, the memory budget and the clock of its server know it; `Connection` is what makes it HTTP.

    `input` is the flow of bytes in, `secure` tells whether TLS is spoken. `paused` tells that the caller does not take what was
    written: `untaken` bytes when that began, `unsent` when that was last looked at. `ready` are answers that are not written yet.
    `charged` is how many bytes the memory budget counts for it, `network` stands for the caller's network; empty for a peer that
    speaks for many callers.
    """

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.input: u8 = READING
        self.secure: bool = False
        self.paused: bool = False
        self.ready: bytes = b""
        self.unsent: i64 = 0
        self.untaken: i64 = 0
        self.charged: i64 = 0
        self.network: bytes = b""

    def open_transport(self, transport: asyncio.Transport) -> str:
        """Begin with a transport; return the address of the other end, empty where there is none, as on a Unix socket."""
        self.transport = transport
        self.secure = transport.get_extra_info("sslcontext") is not None
        peer = transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) and peer else ""

    # In

    def pause_reading(self) -> None:
        """Read no more for now."""
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
        """Write what is ready; for a caller that is gone it is dropped."""
        ready = self.ready
        if ready:
            self.ready = b""
            transport = self.transport
            if transport is not None and not transport.is_closing():
                transport.write(ready)

    def write(self, data: bytes) -> None:
        """Write bytes now, behind what is ready."""
        self.flush()
        if self.transport is not None:
            self.transport.write(data)

    def write_both(self, head: bytes, body: bytes) -> None:
        """Write a head and its body now, behind what is ready, without copying them together."""
        self.flush()
        if self.transport is not None:
            self.transport.writelines((head, body))

    def note_untaken(self) -> None:
        """Note that the caller does not take what was written."""
        self.paused = True
        self.unsent = 0
        if self.transport is not None:
            self.untaken = self.transport.get_write_buffer_size()

    def note_taken(self) -> None:
        """Note that the caller took what was written."""
        self.paused = False
        self.untaken = 0

    def took_some(self) -> bool:
        """Return whether the caller took any of what was written since this was last asked."""
        before = self.unsent
        if self.transport is not None:
            self.unsent = self.transport.get_write_buffer_size()
        return self.unsent != before

    # The end

    def end_writing(self) -> None:
        """Write what is ready, then close our half of the connection, where there are halves: TLS knows none."""
        self.flush()
        transport = self.transport
        if transport is not None and not self.secure and transport.can_write_eof():
            transport.write_eof()

    def close_transport(self) -> None:
        """Close when what is ready and what was written is sent."""
        self.flush()
        if self.transport is not None:
            self.transport.close()

    def abort_transport(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    # What the memory budget and the clock ask for

    def free_memory(self) -> None:
        """End, because all connections together hold too much."""

    def check_time(self, now: i64) -> None:
        """End what takes too long; `now` is the number of the clock's tick."""
