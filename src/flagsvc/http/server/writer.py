"""Writes answers. All answers of one turn of the event loop are written together. Compiled.

Waking a caller is a large part of a request's cost. A caller with several answers is woken once: an answer waits for the others of
the same turn of the event loop. The wait is short: at a certain number of answers or bytes, all are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from flagsvc.http.messages import Response
from flagsvc.http.server.encoder import Defaults, ResponseEncoder
from flagsvc.http.server.stream import Stream

MAX_ANSWERS: Final = 32
"""The most answers that wait for others."""
MAX_BYTES: Final = 131_072
"""The most bytes of answers that wait for others."""
SEPARATE_BYTES: Final = 65_536
"""A body of at least this many bytes is cheaper to write separately than to copy after its head."""


class ResponseWriter:
    """Writes the answers of one server. `streams` have an answer that is ready; `size` is the number of bytes of all of them."""

    def __init__(self, defaults: Defaults, loop: asyncio.AbstractEventLoop) -> None:
        self.encoder: Final = ResponseEncoder(defaults)
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
            stream.write_both(self.encoder.encode(response, ending, []), body)

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
