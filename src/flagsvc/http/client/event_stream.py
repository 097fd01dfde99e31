"""Server-sent events as the HTML standard has them ("Interpreting an event stream"): bytes in pieces become events. No I/O.

The data of one event can be megabytes of a document, which are not needed here. So a reader keeps only how they begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.answers import coding_of
from flagsvc.http.streams import EVENT_STREAM

BOM = b"\xef\xbb\xbf"
KEPT_BYTES = 1024
"""The bytes of a line that are kept. A longer id is no id."""
KEPT_DATA = 64
"""The characters of an event's data that are kept."""
LONGEST_RETRY_MS = 86_400_000
"""The most milliseconds that `retry` counts for."""
IDENTITY = ("", "identity")


class ServerEvent(NamedTuple):
    """An event: its name, the last id that the stream has given so far, and the first KEPT_DATA characters of its data."""

    name: str
    id: str
    data: str


def is_event_stream(headers: Mapping[str, str]) -> bool:
    """Return whether an answer with these headers is an event stream that is not compressed."""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media == EVENT_STREAM.decode() and coding_of(headers) in IDENTITY


class EventReader:
    """Reads one stream. `retry_ms` is the last `retry` of the stream, in milliseconds; None without one."""

    def __init__(self, longest_line: int) -> None:
        """Take the most bytes of a line."""
        self.retry_ms: int | None = None
        self._longest_line = longest_line
        self._line = bytearray()
        self._length = 0
        self._is_first = True
        self._ends_with_cr = False
        self._id = self._name = self._data = ""
        self._has_data = False

    def feed(self, data: bytes) -> list[ServerEvent]:
        """Return the events that end in these bytes. Raises UpstreamError of kind `document` for a line that is too long."""
        if self._ends_with_cr and data.startswith(b"\n"):
            data = data[1:]
            self._ends_with_cr = False
        if not data:
            return []
        self._ends_with_cr = data.endswith(b"\r")
        *whole, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for part in whole:
            self._add(part)
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._add(rest)
        return events

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        self._line += part[: KEPT_BYTES - len(self._line)]
        if self._length > self._longest_line:
            raise UpstreamError("document", f"a line of the event stream is longer than {self._longest_line} bytes")

    def _end_line(self) -> ServerEvent | None:
        """Take the line that ends here. Returns the event that a blank line completes."""
        line, is_whole = bytes(self._line), self._length <= KEPT_BYTES
        self._line.clear()
        self._length = 0
        if self._is_first:
            line, self._is_first = line.removeprefix(BOM), False
        if not line:
            return self._end_event()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        self._take_field(name, value.removeprefix(" "), is_whole=is_whole)
        return None

    def _take_field(self, name: str, value: str, *, is_whole: bool) -> None:
        """Take a field. One with an empty name is a comment, and an unknown one means nothing."""
        if name == "event":
            self._name = value
        elif name == "data":
            self._has_data = True
            self._data = f"{self._data}{value[:KEPT_DATA]}\n"[: KEPT_DATA + 1]
        elif name == "id" and is_whole and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = min(int(value), LONGEST_RETRY_MS)

    def _end_event(self) -> ServerEvent | None:
        """Return the event; None if it has no data."""
        event = ServerEvent(self._name or "message", self._id, self._data.removesuffix("\n")[:KEPT_DATA])
        has_data = self._has_data
        self._forget_event()
        return event if has_data else None

    def _forget_event(self) -> None:
        self._name = self._data = ""
        self._has_data = False
