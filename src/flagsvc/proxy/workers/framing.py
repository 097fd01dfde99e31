"""Frames on a stream of bytes: a short head and a body of any size. Pure.

A frame consists of the lengths of head and body, four bytes each, then the head and the body.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

LENGTHS = Struct("!II")
MAX_HEAD = 64 * 1024 * 1024
"""The most bytes of a head. A longer one is an error of the other end."""


class FrameError(ValueError):
    """The bytes are not a frame."""


class Frame(NamedTuple):
    """A frame."""

    head: bytes
    body: bytes


def frame(head: bytes, body: bytes = b"") -> list[bytes]:
    """Return a frame as parts to write one after the other. The body is not copied."""
    start = LENGTHS.pack(len(head), len(body)) + head
    return [start, body] if body else [start]


class Deframer:
    """Turns a stream of bytes, received in pieces of any size, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = LENGTHS.size

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes and return the frames that are complete now. Raises FrameError."""
        self._buffer += data
        found: list[Frame] = []
        while len(self._buffer) >= self._needed and (complete := self._take_frame()) is not None:
            found.append(complete)
        return found

    def _take_frame(self) -> Frame | None:
        """Remove the first frame from the buffer and return it; None if it is not complete yet."""
        head, body = LENGTHS.unpack_from(self._buffer)
        if head > MAX_HEAD:
            raise FrameError(f"a head of {head} bytes")
        middle, end = LENGTHS.size + head, LENGTHS.size + head + body
        if len(self._buffer) < end:
            self._needed = end
            return None
        with memoryview(self._buffer) as view:
            complete = Frame(bytes(view[LENGTHS.size : middle]), bytes(view[middle:end]))
        del self._buffer[:end]
        self._needed = LENGTHS.size
        return complete
