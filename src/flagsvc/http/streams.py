"""Event streams: callers stay connected and are told when what they follow has changed (decision 0036). Compiled.

Each thing that callers follow is a `Channel` with a version. A `Subscriber` is one open stream; it remembers the version that it
has been told, so the newest version is all that ever waits for it. `Streams` are all open streams of a process: their limits,
heartbeats and ends. Everything happens in the thread of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple, TypeAlias

from mypy_extensions import i64, mypyc_attr

from flagsvc.http.messages import Headers, HttpError
from flagsvc.http.parts import SEPARATE_BYTES, Parts
from flagsvc.http.reached_limits import STREAMS

EVENT_STREAM: Final = b"text/event-stream"
HEADERS: Final[Headers] = [
    (b"content-type", EVENT_STREAM),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
"""The headers of a stream. No cache keeps it, and nginx passes each part on at once."""
BEAT: Final = b":\n\n"
"""A comment. A caller that hears nothing for longer knows that its stream is gone."""
BEAT_S: Final = 15.0
"""Seconds between two heartbeats. Balancers end connections that are silent for a minute, and SDKs after 30 s."""
SLOTS: Final = 256
"""The groups of streams. Each group gets its heartbeat at another moment, so that requests are answered in between."""
PER_TURN: Final = 32
"""About so many streams get their heartbeat together."""
MOST_TURNS: Final = 64
"""The most groups that get their heartbeat together, where there are few streams."""
SLICE_S: Final = 0.001
"""The least seconds between two groups that are told of a change. Requests are answered in between."""
SLICE_BYTES: Final = 262_144
"""A group ends with the caller that makes the texts of a group longer than this: requests are answered before the next group."""
AT_ONCE: Final = 100
"""With so many open streams all are told at once. With more, the first request of each is spread over a while."""
SECOND: Final = 10_000
"""So many callers are told within a second."""
MAX_WINDOW_S: Final = 10.0
MIN_AGE_S: Final = 1800.0
"""A stream ends after this time, and at most the same time later. So callers spread over all processes."""
MIN_RETRY_MS: Final = 1000
MAX_RETRY_MS: Final = 5000
"""After its end, a caller waits a time between these two until it asks again: each caller another time."""
MIN_FULL_RETRY_MS: Final = 20_000
MAX_FULL_RETRY_MS: Final = 29_000
"""The same where there is no room. OpenFeature's provider for pages takes a stream as broken that is away for 30 s."""
RETRY_AFTER_S: Final = 30
"""Seconds after which a caller may try again for whom there is no room."""
LATE_BEATS: Final = 2
"""A caller that reads nothing for so many heartbeats is dropped."""
ENDS_IN: Final = 0.8
"""The part of the grace period over which streams end."""

MayStay: TypeAlias = Callable[[], bool]


class StreamLimits(NamedTuple):
    """The most open streams of the process, and of one network. `window_ms` are the milliseconds over which the callers are told of
    a change; None for a time that grows with their number."""

    total: int = 10_000
    network: int = 1000
    window_ms: int | None = None


@mypyc_attr(allow_interpreted_subclasses=True)
class Channel:
    """What a group of callers follows. A subclass says what they hear.

    `version` is the newest version that was announced, and `changed` the moment of the event loop at which it came. `is_delivering`
    tells that the callers are being told over a while, and `is_behind` that there was an announcement since that began. `is_split`
    tells that a caller may have another version than those that were announced.
    """

    def __init__(self, streams: Streams) -> None:
        self.streams: Final = streams
        self.subscribers: set[Subscriber] = set()
        self.version: str = ""
        self.changed: float = 0.0
        self.is_delivering: bool = False
        self.is_behind: bool = False
        self.is_split: bool = False

    def greet(self, known: str) -> tuple[str, bytes]:
        """Return the newest version, and the first text for a caller with a version; no text for a caller that has none."""
        return (self.version, b"") if known == self.version or not known else self.bring(known)

    def bring(self, known: str) -> tuple[str, bytes]:
        """Return the version to which a caller is brought from another one, and the text that does it."""
        return self.version, self.tell(known)

    def tell(self, known: str) -> bytes:
        """Return the text that brings a caller from a version to the newest."""
        return b""

    def join(self) -> None:
        """Get ready for a further subscriber: find out the newest version."""

    def announce(self, version: str, changed: float = 0.0) -> None:
        """Tell all callers of a new version, within the window. `changed` is the moment of the event loop at which it came; 0 for
        now."""
        if version != self.version or self.is_split:
            self.version = version
            self.changed = changed or asyncio.get_running_loop().time()
            self.is_behind, self.is_split = True, False
            if self.subscribers:
                self.streams.deliver(self)

    def end_all(self) -> None:
        """End every stream."""
        for each in list(self.subscribers):
            each.end()


@mypyc_attr(allow_interpreted_subclasses=True)
class Subscriber(Parts):
    """One open stream. `network` is the caller's, empty if it cannot be told, and `may_stay` tells whether the key still counts.

    `told` is the version that the caller has been told. `slot` is the group of its heartbeat, and `ends` the moment of its end. The
    last `late` heartbeats found a caller that had read nothing, and `waiting` bytes for it.
    """

    def __init__(self, channel: Channel, network: bytes, known: str, may_stay: MayStay) -> None:
        super().__init__()
        self.channel: Final = channel
        self.network: Final = network
        self.may_stay: Final = may_stay
        self.told: str = known
        self.slot: i64 = 0
        self.ends: float = 0.0
        self.late: i64 = 0
        self.waiting: i64 = 0

    def on_open(self) -> None:
        """Join the others, and say what the caller does not know. Without room, end after that."""
        channel = self.channel
        streams = channel.streams
        channel.join()
        has_room = streams.join(self)
        first = self.hear(channel.greet(self.told))
        retry = b"retry: %d\n" % streams.draw_retry(has_room)
        if len(first) < SEPARATE_BYTES:
            self.send(retry + (first or b"id: %b\n\n" % self.told.encode()))
        else:
            self.send(retry)
            self.send(first)
        if not has_room:
            self.end()

    def hear(self, news: tuple[str, bytes]) -> bytes:
        """Note the version that the caller is told. Returns the text."""
        channel = self.channel
        self.told, text = news
        if self.told != channel.version:
            channel.is_split = True
        return text

    def on_end(self) -> None:
        """Leave the others."""
        self.channel.streams.leave(self)

    def drain(self) -> None:
        """End soon, together with the streams of the others spread over the grace period."""
        streams = self.channel.streams
        if streams.grace_s > 0.0:
            asyncio.get_running_loop().call_later(streams.random.random() * streams.grace_s * ENDS_IN, self.end)
        else:
            self.end()

    def update(self) -> bool:
        """Tell the newest version. Returns whether the caller has heard it: who does not read hears it at a later heartbeat."""
        channel = self.channel
        outlet = self.outlet
        if outlet is None or self.told == channel.version or outlet.is_full():
            return False
        text = self.hear(channel.bring(self.told))
        self.send(text)
        if not text:
            return False
        streams = channel.streams
        streams.told += 1
        streams.sent += len(text)
        streams.delay_s += asyncio.get_running_loop().time() - channel.changed
        return True

    def beat(self, now: float) -> None:
        """Show that the stream lives, or end it: it is old, its key counts no longer, or the caller reads nothing."""
        outlet = self.outlet
        if outlet is None:
            return
        if now >= self.ends or not self.may_stay():
            self.end()
        elif not outlet.is_full():
            self.late = self.waiting = 0
            if not self.update():
                self.send(BEAT)
        else:
            self.note_slow_reader(outlet.waiting())

    def note_slow_reader(self, waiting: i64) -> None:
        """Drop a caller that reads nothing. A caller that still reads a long text may take its time."""
        self.late = 0 if waiting < self.waiting else self.late + 1
        self.waiting = waiting
        if self.late >= LATE_BEATS:
            self.channel.streams.dropped += 1
            self.send(BEAT)  # the outlet is full, so this drops the caller


class Streams:
    """The open streams of one process, of all channels. While there are any, a timer beats.

    `grace_s` is the length of the grace period at the end of the process. The counters are for the metrics: streams that were
    opened and dropped, changes that were told, and the sum of the seconds from the change until then. `sent` are the bytes of these
    changes.
    """

    def __init__(self, limits: StreamLimits, random: Random | None = None, *, grace_s: float = 0.0, beat_s: float = BEAT_S) -> None:
        self.limits = limits
        self.random: Final = Random() if random is None else random
        self.grace_s = grace_s
        self.beat_s: Final = beat_s
        self.count: i64 = 0
        self.networks: dict[bytes, int] = {}
        self.slots: list[set[Subscriber]] = [set() for _ in range(SLOTS)]
        self.turn: i64 = 0
        self.is_beating: bool = False
        self.opened: i64 = 0
        self.dropped: i64 = 0
        self.told: i64 = 0
        self.delay_s: float = 0.0
        self.sent: i64 = 0

    def check_room(self, network: bytes) -> None:
        """Raise HttpError (404, 429) if no stream can be opened: streams are off, or there are too many of all or of a network."""
        self.check_on()
        if not self.has_room(network):
            raise HttpError(429, "too many event streams are open; poll instead, or try again later", [], STREAMS, RETRY_AFTER_S)

    def check_on(self) -> None:
        """Raise HttpError (404) if streams are off."""
        if self.limits.total == 0:
            raise HttpError(404, "event streams are switched off (option `maxStreams`)", [])

    def has_room(self, network: bytes) -> bool:
        limits = self.limits
        return self.count < limits.total and (not network or self.networks.get(network, 0) < limits.network)

    def join(self, subscriber: Subscriber) -> bool:
        """Add a stream that has opened. Returns False if there is no room."""
        network = subscriber.network
        if not self.has_room(network):
            return False
        self.count += 1
        self.opened += 1
        if network:
            self.networks[network] = self.networks.get(network, 0) + 1
        draw = self.random
        subscriber.slot = draw.randrange(SLOTS)
        self.slots[subscriber.slot].add(subscriber)
        subscriber.channel.subscribers.add(subscriber)
        loop = asyncio.get_running_loop()
        subscriber.ends = loop.time() + MIN_AGE_S * (1.0 + draw.random())
        if not self.is_beating:
            self.is_beating = True
            loop.call_later(self.beat_s * MOST_TURNS / SLOTS, self.beat)
        return True

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a stream that has ended."""
        members = self.slots[subscriber.slot]
        if subscriber not in members:
            return
        members.discard(subscriber)
        subscriber.channel.subscribers.discard(subscriber)
        self.count -= 1
        network = subscriber.network
        if network:
            left = self.networks[network] - 1
            if left:
                self.networks[network] = left
            else:
                del self.networks[network]

    def draw_retry(self, has_room: bool = True) -> int:
        """Return the milliseconds that a caller waits after the end of its stream."""
        if has_room:
            return self.random.randrange(MIN_RETRY_MS, MAX_RETRY_MS)
        return self.random.randrange(MIN_FULL_RETRY_MS, MAX_FULL_RETRY_MS)

    def beat(self) -> None:
        """Let the next groups live. Without any stream the timer stops."""
        if self.count == 0:
            self.is_beating = False
            return
        loop = asyncio.get_running_loop()
        turns = max(1, min(MOST_TURNS, SLOTS * PER_TURN // self.count))
        loop.call_later(self.beat_s * float(turns) / SLOTS, self.beat)
        now = loop.time()
        for _ in range(turns):
            for each in self.slots[self.turn]:
                loop.call_soon(each.beat, now)
            self.turn = (self.turn + 1) % SLOTS

    def end_all(self) -> None:
        """End every stream."""
        for members in self.slots:
            for each in list(members):
                each.end()

    def window(self) -> float:
        """Return the seconds over which callers are told of a change."""
        window_ms = self.limits.window_ms
        if window_ms is not None:
            return window_ms / 1000.0
        return 0.0 if self.count <= AT_ONCE else min(MAX_WINDOW_S, float(self.count) / SECOND)

    def deliver(self, channel: Channel) -> None:
        """Tell all callers of a channel its newest version, in groups.

        A change meanwhile reaches the callers that still wait, and then the others.
        """
        if channel.is_delivering:
            return
        channel.is_behind = False
        behind = [each for each in channel.subscribers if each.told != channel.version]
        self.random.shuffle(behind)
        channel.is_delivering = True
        self.deliver_slice(channel, behind, len(behind), asyncio.get_running_loop().time(), self.window())

    def deliver_slice(self, channel: Channel, behind: list[Subscriber], total: i64, began: float, window_s: float) -> None:
        """Tell as many of these callers as are due by now, and the others later."""
        loop = asyncio.get_running_loop()
        left = window_s - (loop.time() - began + SLICE_S)
        waiting = int(float(total) * left / window_s) if left > 0.0 else 0
        try:
            self.tell(behind, len(behind) - waiting)
        finally:
            if behind:
                loop.call_later(max(SLICE_S, window_s / float(total)), self.deliver_slice, channel, behind, total, began, window_s)
            else:
                channel.is_delivering = False
                if channel.is_behind:
                    self.deliver(channel)

    def tell(self, callers: list[Subscriber], size: i64) -> None:
        """Take so many callers from the end and tell them, fewer if that is more than SLICE_BYTES."""
        until = self.sent + SLICE_BYTES
        while callers and size > 0 and self.sent < until:
            callers.pop().update()
            size -= 1
