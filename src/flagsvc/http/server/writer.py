"""Answers become bytes on their way out; those of one turn of the event loop are written together. Compiled.

Waking a caller is a large part of what a request costs. A caller that several answers go to is woken once: answers wait for those
that the same turn of the event loop still makes. They never wait for long: at a number of them, or of bytes, all are written.
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
"""Answers that wait for one another at most."""
MAX_BYTES: Final = 131_072
"""Bytes of answers that wait for one another at most."""
SEPARATE_BYTES: Final = 65_536
"""Bytes of a body from which on it is cheaper to write it beside its head than to copy it behind."""


class ResponseWriter:
    """Writes the answers of one server. `streams` have an answer ready that is not written yet, `size` bytes of all of them."""

    def __init__(self, defaults: Defaults, loop: asyncio.AbstractEventLoop) -> None:
        self.encoder: Final = ResponseEncoder(defaults)
        self.loop: Final = loop
        self.streams: list[Stream] = []
        self.size: i64 = 0
        self.scheduled: bool = False
        self.callback: Callable[[], None] = self.flush_scheduled

    def write(self, stream: Stream, response: Response, ending: bytes) -> None:
        """Write an answer when this turn of the event loop ends, or before; `ending` ends its head."""
        body = response.body
        if len(body) < SEPARATE_BYTES:
            data = self.encoder.encode(response, ending, body)
            stream.ready = stream.ready + data if stream.ready else data
            self.add(stream, len(data))
        else:
            stream.write_both(self.encoder.encode(response, ending, b""), body)

    def add(self, stream: Stream, size: i64) -> None:
        """Flush a stream when this turn of the event loop ends, or before; it has `size` bytes more than it had."""
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
