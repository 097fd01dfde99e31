"""Event streams of live pages: hints that something has changed (decision 0032). A page then asks for its part again.

Everything but `announce` happens in the thread of the event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from flagsvc.http.messages import HttpError
from flagsvc.http.parts import Parts
from flagsvc.pages.headers import PAGE_HEADERS

MAX_STREAMS: Final = 256
"""The most open streams of a server."""
MAX_OF_ONE: Final = 8
"""The most open streams of one viewer. Further pages of the viewer ask every few seconds instead."""
BEAT_S: Final = 15.0
"""Seconds between two heartbeats."""
MERGE_S: Final = 0.25
"""Seconds between announcements that are sent. Of those with the same name meanwhile, the last one counts."""
HEADERS: Final = (*PAGE_HEADERS, (b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"))
HEARTBEAT: Final = b"event: beat\ndata: {}\n\n"
"""An event, and no comment: a page that hears nothing for longer knows that its stream is gone."""
BEGIN: Final = b"retry: 5000\n\n"
"""The first part. After a broken stream a browser waits 5000 ms before it asks again."""

MayStay: TypeAlias = Callable[[], bool]
Beat: TypeAlias = Callable[[], bytes]


class EventStream(Parts):
    """One open page. `may_stay` tells whether its viewer may still see it. `viewer` is None where viewers cannot be told apart."""

    def __init__(self, streams: EventStreams, may_stay: MayStay, viewer: Hashable) -> None:
        super().__init__()
        self.may_stay: Final = may_stay
        self.viewer: Final = viewer
        self._streams: Final = streams

    def on_open(self) -> None:
        """Join the others. Above a limit, end."""
        if self._streams.join(self):
            self.send(BEGIN)
        else:
            self.end()

    def on_end(self) -> None:
        """Leave the others."""
        self._streams.leave(self)


class EventStreams:
    """The open streams of a server. While there are some, a timer beats every `beat_s` seconds and sends what `beat` returns."""

    def __init__(self, beat: Beat = lambda: HEARTBEAT, beat_s: float = BEAT_S) -> None:
        self._beat: Final = beat
        self._beat_s: Final = beat_s
        self._open: set[EventStream] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: dict[str, bytes] = {}
        self._pausing = False

    @property
    def count(self) -> int:
        """The number of open streams."""
        return len(self._open)

    @property
    def is_beating(self) -> bool:
        """Whether the timer runs."""
        return self._timer is not None

    def make(self, may_stay: MayStay, viewer: Hashable = None) -> EventStream:
        """Return a new stream, in any thread. Raises HttpError (503) if there are too many, or too many of a viewer."""
        if reason := self._lack_of_room(viewer):
            raise HttpError(503, reason, [], "", 5)
        return EventStream(self, may_stay, viewer)

    def _lack_of_room(self, viewer: Hashable) -> str:
        """Return why a viewer gets no further stream; empty if the viewer does."""
        held = [each.viewer for each in tuple(self._open)]  # a tuple: another thread may open or end a stream meanwhile
        if len(held) >= MAX_STREAMS:
            return f"{MAX_STREAMS} pages are open and live, and this server takes no more"
        if viewer is not None and held.count(viewer) >= MAX_OF_ONE:
            return f"{MAX_OF_ONE} of your pages are open and live, and this server takes no more of one viewer"
        return ""

    def join(self, stream: EventStream) -> bool:
        """Add a stream that has opened. Returns False if there are too many."""
        if self._lack_of_room(stream.viewer):
            return False
        self._open.add(stream)
        if self._timer is None:
            self._loop = asyncio.get_running_loop()
            self._waiting, self._pausing = {}, False
            self._timer = self._loop.call_later(self._beat_s, self._on_beat)
        return True

    def leave(self, stream: EventStream) -> None:
        """Remove a stream that has ended. The last one stops the timer."""
        self._open.discard(stream)
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = self._loop = None

    def announce(self, name: str, data: Mapping[str, Any]) -> None:
        """Send an event to every stream soon. Any thread may call it; without a stream nothing happens."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._note, name, event(name, data))

    def end_all(self) -> None:
        for stream in list(self._open):
            stream.end()

    def _note(self, name: str, text: bytes) -> None:
        """Send an announcement at once; soon after others, let it wait for more of its name."""
        self._waiting[name] = text
        if not self._pausing:
            self._send_waiting()

    def _send_waiting(self) -> None:
        """Send what waits, and then pause. Without anything that waits, the pause ends."""
        self._pausing = bool(self._waiting)
        if self._pausing:
            asyncio.get_running_loop().call_later(MERGE_S, self._send_waiting)
            found, self._waiting = b"".join(self._waiting.values()), {}
            self._send_all(found)

    def _on_beat(self) -> None:
        """End the streams whose viewers have gone, and send the beat to the others."""
        assert self._loop is not None
        self._timer = self._loop.call_later(self._beat_s, self._on_beat)
        for stream in list(self._open):
            if not stream.may_stay():
                stream.end()
        if self._open:
            self._send_all(self._beat())

    def _send_all(self, text: bytes) -> None:
        """Send a text to every stream. One that is dropped for it leaves meanwhile."""
        for stream in list(self._open):
            stream.send(text)


def event(name: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
