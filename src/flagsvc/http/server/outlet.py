"""The outlet of an answer in parts on a connection: chunks in HTTP/1.1, plain bytes up to the end in HTTP/1.0. Compiled.

The queue of a stream is the transport's. It is full when the transport tells that the caller does not read, at 64 kB. The next part
then finds a slow reader, and drops it.
"""

from __future__ import annotations

from typing import Final

from flagsvc.http.parts import Outlet, Parts
from flagsvc.http.server.stream import Stream

CHUNKED: Final = (b"transfer-encoding", b"chunked")
LAST_CHUNK: Final = b"0\r\n\r\n"


class ConnectionOutlet(Outlet):
    """The parts of the last answer of a connection. Without `chunked`, the end of the connection ends the body."""

    def __init__(self, stream: Stream, parts: Parts, chunked: bool) -> None:
        self.stream: Final = stream
        self.parts: Final = parts
        self.chunked: Final = chunked

    def write(self, data: bytes) -> None:
        """Write a part now. A caller that does not read is dropped."""
        if self.stream.paused:
            self.stream.drop_slow_reader()
        else:
            self.stream.write(chunk(data) if self.chunked else data)

    def end(self) -> None:
        """End the answer and its connection. A caller that does not read is not waited for."""
        stream = self.stream
        if stream.paused:
            stream.drop_slow_reader()
        elif stream.parts is self.parts:
            if self.chunked:
                stream.write(LAST_CHUNK)
            stream.lose_parts()
            stream.end_parts()


def chunk(data: bytes) -> bytes:
    """Return a part as a chunk (RFC 9112, 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)
