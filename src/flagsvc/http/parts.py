"""Answers in parts: the body comes over time, and its end is not known beforehand (decision 0032). Compiled.

A program answers with a PartsResponse, later than at once: from a task. The transport writes the head and opens the `Parts`; from
then on the program sends parts. A transport has an outlet for each such answer. Everything happens in the thread of the event loop.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from flagsvc.http.messages import Headers, Response

SEPARATE_BYTES: Final = 65_536
"""A body or a part of at least this many bytes is cheaper to write separately than to copy to what stands around it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Outlet:
    """Where a transport takes the parts of one answer. No method raises."""

    def write(self, data: bytes) -> None:
        """Write a part. A caller that does not read is dropped."""

    def end(self) -> None:
        """End the answer in order."""

    def is_full(self) -> bool:
        """Return whether the caller does not read, so that another part would drop it."""
        return False

    def waiting(self) -> int:
        """Return how many bytes the caller has not read yet, as far as the transport can tell."""
        return 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Parts:
    """The body of one answer. No method raises.

    `outlet` is there from the moment that the head is written until the answer or its connection ends.
    """

    def __init__(self) -> None:
        self.outlet: Outlet | None = None

    def open(self, outlet: Outlet) -> None:
        """Begin. The transport calls it once, or never if the caller has gone."""
        self.outlet = outlet
        self.on_open()

    def lose(self) -> None:
        """Note that nothing more can be sent. The transport calls it; a second call does nothing."""
        if self.outlet is not None:
            self.outlet = None
            self.on_end()

    def send(self, data: bytes) -> None:
        """Send a part. Without a caller, or without bytes, nothing happens."""
        if self.outlet is not None and data:
            self.outlet.write(data)

    def end(self) -> None:
        """End the answer in order."""
        if self.outlet is not None:
            self.outlet.end()

    def drain(self) -> None:
        """End soon, because the process ends: at once, unless the program spreads its ends."""
        self.end()

    def on_open(self) -> None:
        """Do what is due at the beginning."""

    def on_end(self) -> None:
        """Do what is due after the end."""


class PartsResponse(Response):
    """An answer whose body comes in parts. It has no length, and is the last answer of its connection.

    A HEAD gets a Response with the same headers instead.
    """

    def __init__(self, status: int, fixed: Headers, own: Headers, parts: Parts) -> None:
        super().__init__(status, fixed, own, b"")
        self.parts = parts
