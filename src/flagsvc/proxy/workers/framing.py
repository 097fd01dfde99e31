"""Frames on a stream of bytes: a short head, and a body of any size behind it. Pure.

A frame is the lengths of both, four bytes each, then head and body.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

LENGTHS = Struct("!II")
MOST_HEAD = 64 * 1024 * 1024
"""Bytes of a head that nobody sends: whoever announces more has lost the thread."""


class FrameError(ValueError):
    """The bytes are no frames."""


class Frame(NamedTuple):
    """One frame."""

    head: bytes
    body: bytes


def frame(head: bytes, body: bytes = b"") -> list[bytes]:
    """Return a frame as parts to be written one behind the other; a body is not copied."""
    start = LENGTHS.pack(len(head), len(body)) + head
    return [start, body] if body else [start]


class Deframer:
    """Takes bytes cut anywhere and gives the frames that are complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = LENGTHS.size

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete with these bytes. Raises FrameError."""
        self._buffer += data
        found: list[Frame] = []
        while len(self._buffer) >= self._wanted and (complete := self._take()) is not None:
            found.append(complete)
        return found

    def _take(self) -> Frame | None:
        """Return the first frame of the buffer, None where more of it has to come first."""
        head, body = LENGTHS.unpack_from(self._buffer)
        if head > MOST_HEAD:
            raise FrameError(f"a head of {head} bytes")
        middle, end = LENGTHS.size + head, LENGTHS.size + head + body
        if len(self._buffer) < end:
            self._wanted = end
            return None
        with memoryview(self._buffer) as view:
            complete = Frame(bytes(view[LENGTHS.size : middle]), bytes(view[middle:end]))
        del self._buffer[:end]
        self._wanted = LENGTHS.size
        return complete
