"""What has changed from one document of server-side SDKs to the next (dialects: Delta and streaming).

`Changes` remembers when each feature and each segment last changed. So the changes since any remembered document are at hand, and
nothing of the older documents is kept. An SDK that asks gets the changes since the document that it has, and a `DeltaChannel`
tells the changes to SDKs that stay connected. Both programs use this module.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, Generic, NamedTuple, TypeVar
from weakref import WeakSet

import msgspec

from flagsvc.core.clock import Clock
from flagsvc.http.compression import gzip
from flagsvc.http.messages import HttpError
from flagsvc.http.shapes import Array, Integer, Object, String
from flagsvc.http.streams import RETRY_AFTER_S, Channel, Streams

ID_DIGITS: Final = 13
"""So many hexadecimal digits of a document's digest are its id: a number that every program reads exactly."""
EVENT_ID_BITS: Final = 31
"""The member `eventId` has these bits of the id. SDKs read it as a number of 32 bits, and ignore an event with a larger one."""
MAX_KNOWN: Final = 256
"""The last documents whose ids are remembered."""
MAX_GONE: Final = 10_000
"""The most removed features, and the most removed segments, that are remembered."""
MAX_MADE_BYTES: Final = 32 * 1024 * 1024
"""The most bytes of events that the process keeps. A further event drops all before. Their compressed forms come on top."""
MAX_CHANNELS: Final = 64
"""The most filtered contents whose changes are remembered. For one more, the content ends that was asked for least recently."""
MAX_STREAMED: Final = 48
"""The most filtered contents that have streams, so that there is room for callers who ask for the changes of others."""
FORGET_S: Final = 600.0
"""Seconds without a request and without a stream after which the changes of a content are forgotten."""
CROWDED: Final = "callers with too many different filters have event streams; poll instead, or ask without a filter"
DEFAULT_PROJECT: Final = "default"
CONNECTED: Final = b"unleash-connected"
UPDATED: Final = b"unleash-updated"
STREAMING: Final = (b"fetch-mode", b"streaming")
"""The header of a document that has SDKs open a stream. They open it without their filters, so only a request without filters gets
it."""
ANY: Final = b"*"
TAGS: Final = re.compile(rb'"(\d{1,20})"')
"""The ids in an If-None-Match."""

EVENT: Final = Object(
    {
        "type": String(),
        "eventId": Integer(),
        "features": Array(Object()),
        "segments": Array(Object()),
        "feature": Object(),
        "featureName": String(),
        "project": String(),
        "segment": Object(),
        "segmentId": Integer(),
    },
    required=("type", "eventId"),
)
ANSWER: Final = Object({"events": Array(EVENT)}, required=("events",))
"""The shape of an answer of delta."""

encode = msgspec.json.encode


class Feature(msgspec.Struct):
    """What is read of a feature."""

    name: str
    project: object = DEFAULT_PROJECT


class Segment(msgspec.Struct):
    """What is read of a segment."""

    id: int


class Content(msgspec.Struct):
    """What is read of a document."""

    features: list[msgspec.Raw] = []
    segments: list[msgspec.Raw] = []


FEATURE: Final = msgspec.json.Decoder(Feature)
SEGMENT: Final = msgspec.json.Decoder(Segment)
CONTENT: Final = msgspec.json.Decoder(Content)

K = TypeVar("K", str, int)


def read_feature(raw: msgspec.Raw) -> tuple[str, str]:
    """Return the name and the project of a feature. Raises ValueError for what is none."""
    found = FEATURE.decode(raw)
    return found.name, found.project if isinstance(found.project, str) else DEFAULT_PROJECT


def read_segment(raw: msgspec.Raw) -> tuple[int, str]:
    """Return the id of a segment, and no project. Raises ValueError for what is none."""
    return SEGMENT.decode(raw).id, ""


def split_content(body: bytes) -> tuple[list[msgspec.Raw], list[msgspec.Raw]]:
    """Return the features and the segments of a well-formed document. They keep all of it in memory. Raises ValueError."""
    found = CONTENT.decode(body)
    return found.features, found.segments


def make_id(digest: str) -> str:
    """Return the id of a document from the digest of its content in hexadecimal digits."""
    return str(int(digest[:ID_DIGITS], 16))


def digest_content(features: Iterable[msgspec.Raw], segments: Iterable[msgspec.Raw]) -> str:
    """Return a digest of features and segments, for a document without a digest of its own."""
    found = blake2b(digest_size=8)
    for items in (features, segments):
        for each in items:
            found.update(memoryview(each))
            found.update(b"\n")
        found.update(b"\n")
    return found.hexdigest()


def in_line(raw: msgspec.Raw) -> bytes:
    """Return JSON without a line break, which would end a line of an event."""
    text = bytes(raw)
    return msgspec.json.format(text, indent=-1) if b"\n" in text or b"\r" in text else text


class Item(NamedTuple):
    """A feature with its project, or a segment."""

    raw: msgspec.Raw
    project: str


class Gone(NamedTuple):
    """A feature that was removed, with its project, or a segment: in the document with this number."""

    project: str
    number: int


class Items(Generic[K]):
    """The features of the newest document by name, or its segments by id.

    `changed` has the number of the document with which each of them came or changed, and `gone` what was removed. Both have the
    latest last, and nothing until the document `since`.
    """

    def __init__(self, read: Callable[[msgspec.Raw], tuple[K, str]]) -> None:
        self._read: Final[Callable[[msgspec.Raw], tuple[K, str]]] = read
        self.found: dict[K, Item] = {}
        self.changed: dict[K, int] = {}
        self.gone: dict[K, Gone] = {}

    def replace(self, raws: Iterable[msgspec.Raw], number: int) -> bool:
        """Take those of the next document. Return whether there is any change."""
        before, self.found = self.found, dict(self._read_all(raws))
        changed = [key for key, item in self.found.items() if key not in before or before[key].raw != item.raw]
        gone = [key for key in before if key not in self.found]
        for key in changed:
            self.gone.pop(key, None)
            self.changed.pop(key, None)
            self.changed[key] = number
        for key in gone:
            self.changed.pop(key, None)
            self.gone[key] = Gone(before[key].project, number)
        return bool(changed or gone)

    def _read_all(self, raws: Iterable[msgspec.Raw]) -> Iterator[tuple[K, Item]]:
        """Yield each with its key. Where they follow each other as before, unchanged ones are not decoded again."""
        before, keys = self.found, list(self.found)
        places = {key: place for place, key in enumerate(keys)}
        at = 0
        for raw in raws:
            if at < len(keys) and before[keys[at]].raw == raw:
                yield keys[at], Item(raw, before[keys[at]].project)
                at += 1
                continue
            try:
                key, project = self._read(raw)
            except ValueError:  # msgspec's errors are ValueErrors, too
                continue
            yield key, Item(raw, project)
            at = places.get(key, at - 1) + 1

    def changed_since(self, number: int) -> Iterator[bytes]:
        """Yield the JSON of those that came or changed after a document."""
        for key, when in reversed(self.changed.items()):
            if when <= number:
                return
            yield in_line(self.found[key].raw)

    def gone_since(self, number: int) -> Iterator[tuple[K, str]]:
        """Yield what was removed after a document, with the project."""
        for key, each in reversed(self.gone.items()):
            if each.number <= number:
                return
            yield key, each.project

    def forget(self, number: int) -> None:
        """Forget what changed until a document: no caller is told the changes since an earlier document."""
        self.changed = {key: when for key, when in self.changed.items() if when > number}
        self.gone = {key: each for key, each in self.gone.items() if each.number > number}

    def join(self) -> bytes:
        """Return the JSON of all of them, with commas between."""
        return b",".join(in_line(each.raw) for each in self.found.values())


def tag_of(identity: str) -> bytes:
    """Return the entity tag of an answer of delta."""
    return b'"%b"' % identity.encode()


class Told:
    """What brings a caller to the newest document: `event` for a stream, and the answer of delta. `identity` is the newest id."""

    def __init__(self, name: bytes, identity: str, events: Sequence[bytes]) -> None:
        self.identity: Final = identity
        head = b"event: %b\nid: %b\n" % (name, identity.encode())
        self.event: Final = b'%bdata: {"events":[%b]}\n\n' % (head, b",".join(events))
        self._begin: Final = len(head) + len(b"data: ")
        self._packed: bytes = b""

    @property
    def body(self) -> bytes:
        """The answer of delta."""
        return self.event[self._begin : -2]

    @property
    def packed(self) -> bytes:
        """The answer of delta in gzip format, made once."""
        if not self._packed:
            self._packed = gzip(self.body)
        return self._packed


class KeptTexts:
    """Bounds the bytes of all events that are kept. Safe to use from any thread.

    It counts what was made since it dropped all, so what was dropped meanwhile for another reason counts as well.
    """

    def __init__(self) -> None:
        self._size = 0
        self._owners: WeakSet[Changes] = WeakSet()
        self._lock = threading.Lock()

    def add(self, owner: Changes, size: int) -> None:
        """Make room for an event that an owner keeps from now on: if it is too much, all owners drop theirs."""
        with self._lock:
            if self._size + size > MAX_MADE_BYTES:
                for each in self._owners:
                    each.drop_texts()
                self._size = 0
            self._size += size
            self._owners.add(owner)


KEPT: Final = KeptTexts()
"""Those of the process."""


class Changes:
    """The changes from one document to the next. Safe to use from any thread.

    `identity` is the id of the newest document; empty before the first one. A document with the same content as the one before it
    changes nothing. If such a document has another id, both ids are known, and callers hear the first of them.
    """

    def __init__(self, max_known: int = MAX_KNOWN, max_gone: int = MAX_GONE) -> None:
        self.identity = ""
        self._max_known = max_known
        self._max_gone = max_gone
        self._number = 0
        self._known: OrderedDict[str, int] = OrderedDict()
        self._features = Items(read_feature)
        self._segments = Items(read_segment)
        self._made: dict[str, Told] = {}
        self._lock = threading.RLock()

    def take(self, identity: str, features: Iterable[msgspec.Raw], segments: Iterable[msgspec.Raw]) -> None:
        """Take the next document.

        A feature without a name and a segment without a number as its id are left out. Of several with the same, the last counts.
        """
        with self._lock:
            number = self._number + 1
            changes = [self._features.replace(features, number), self._segments.replace(segments, number)]
            if any(changes) or not self.identity:
                self._number, self.identity = number, identity
                self._made = {}
            self._known[identity] = self._number
            self._known.move_to_end(identity)
            self._forget_old()

    def _forget_old(self) -> None:
        """Forget the oldest ids over the limits, and the changes that only these ids ask for."""
        while len(self._known) > 1 and self._is_over():
            self._known.popitem(last=False)
            self._forget_changes()
        if len(self._known) == 1:
            self._forget_changes()

    def _forget_changes(self) -> None:
        oldest = next(iter(self._known.values()))
        self._features.forget(oldest)
        self._segments.forget(oldest)

    def _is_over(self) -> bool:
        gone = max(len(self._features.gone), len(self._segments.gone))
        return len(self._known) > self._max_known or gone > self._max_gone

    def tell(self, *known: str) -> Told | None:
        """Return what brings a caller from a document to the newest: the changes, or for an unknown document a hydration.

        A caller may name several documents that it has; any one counts. Return None for a caller that has the newest content.
        """
        with self._lock:
            numbers = {each: self._known[each] for each in known if each in self._known}
            latest = max(numbers, key=lambda each: numbers[each], default="")
            if numbers.get(latest) == self._number:
                return None
            if (found := self._made.get(latest)) is None:
                found = self._list_changes(numbers[latest]) if latest else self._hydrate()
                KEPT.add(self, len(found.event))
                self._made[latest] = found
            return found

    def drop_texts(self) -> None:
        """Keep no text. The next caller gets a new text."""
        self._made = {}

    def bring(self, known: str) -> tuple[str, bytes]:
        """Return the newest id, and the event that brings a caller there; no event for a caller that has the newest content."""
        with self._lock:
            found = self.tell(known)
            return self.identity, b"" if found is None else found.event

    def answer(self, condition: bytes | None) -> tuple[str, Told | None]:
        """Return the newest id, and the answer to a request with an If-None-Match, or with None; None for 304."""
        known = [each.decode() for each in TAGS.findall(condition or b"")]
        with self._lock:
            return self.identity, None if condition is not None and condition.strip() == ANY else self.tell(*known)

    @property
    def _event_id(self) -> int:
        return int(self.identity) & ((1 << EVENT_ID_BITS) - 1)

    def _hydrate(self) -> Told:
        """Return the whole content."""
        content = self._event_id, self._features.join(), self._segments.join()
        return Told(CONNECTED, self.identity, [b'{"type":"hydration","eventId":%d,"features":[%b],"segments":[%b]}' % content])

    def _list_changes(self, number: int) -> Told:
        """Return the changes after a document. A segment comes before the features that may need it, and goes after them."""
        mark, features, segments = self._event_id, self._features, self._segments
        updated = ((b"segment", segments.changed_since(number)), (b"feature", features.changed_since(number)))
        events = [
            b'{"type":"%b-updated","eventId":%d,"%b":%b}' % (kind, mark, kind, text) for kind, texts in updated for text in texts
        ]
        for name, project in features.gone_since(number):
            named = mark, encode(name), encode(project)
            events.append(b'{"type":"feature-removed","eventId":%d,"featureName":%b,"project":%b}' % named)
        for identity, _ in segments.gone_since(number):
            events.append(b'{"type":"segment-removed","eventId":%d,"segmentId":%d}' % (mark, identity))
        return Told(UPDATED, self.identity, events)


class DeltaChannel(Channel):
    """The SDKs that stay connected to one document, and hear its changes. `used` is the moment of the last request for it.

    `is_plain` tells that a caller has asked for it without a filter.
    """

    def __init__(self, streams: Streams) -> None:
        super().__init__(streams)
        self.changes: Final = Changes()
        self.used: float = 0.0
        self.is_plain = False

    def greet(self, known: str) -> tuple[str, bytes]:
        """Return the newest id with the changes, or with all content for a caller that has none."""
        return self.bring(known)

    def bring(self, known: str) -> tuple[str, bytes]:
        """Return the newest id, and the event with the changes since a document, or with all content if the document is unknown.

        The newest document may not be announced yet.
        """
        return self.changes.bring(known)


def crowded() -> HttpError:
    """Return the 429 where callers have streams with too many filters."""
    return HttpError(429, CROWDED, [], "", RETRY_AFTER_S)


Q = TypeVar("Q", bound=Hashable)
C = TypeVar("C", bound=DeltaChannel)


class DeltaChannels(Generic[Q, C]):
    """The channels by what their document contains. Any thread may call `find`, and the event loop everything."""

    def __init__(self, make: Callable[[Q], C], clock: Clock) -> None:
        self._make: Final[Callable[[Q], C]] = make
        self._clock = clock
        self._found: OrderedDict[Q, C] = OrderedDict()
        self._streamed: set[C] = set()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        """Return how many channels are kept."""
        return len(self._found)

    def find(self, wanted: Q, *, is_plain: bool, for_stream: bool = False) -> C:
        """Return the channel for a content; `is_plain` tells that the caller has given no filter. Such a caller always has room.

        Raises HttpError (429) if callers have streams with too many other filters.
        """
        with self._lock:
            found = self._found.get(wanted)
            if found is None:
                self._make_room(is_plain)
                found = self._found[wanted] = self._make(wanted)
            found.is_plain = found.is_plain or is_plain
            if for_stream and not found.is_plain and not found.subscribers:
                self._check_streamed()
            self._found.move_to_end(wanted)
            found.used = self._clock.monotonic()
            return found

    def _make_room(self, is_plain: bool) -> None:
        """Forget what is not used. If there are too many filters, forget the one that was asked for least recently."""
        self.forget_unused()
        filtered = {wanted: each for wanted, each in self._found.items() if not each.is_plain}
        if len(filtered) >= MAX_CHANNELS and not is_plain:
            unused = next((wanted for wanted, each in filtered.items() if not each.subscribers), None)
            if unused is None:
                raise crowded()
            del self._found[unused]

    def _check_streamed(self) -> None:
        if sum(1 for each in self._found.values() if each.subscribers and not each.is_plain) >= MAX_STREAMED:
            raise crowded()

    def note_stream(self, channel: C) -> None:
        """Note that a channel gets a stream, also a channel that was dropped just now."""
        self._streamed.add(channel)

    def list_streamed(self) -> list[C]:
        """Return the channels with streams."""
        self._streamed = {each for each in self._streamed if each.subscribers}
        return list(self._streamed)

    def forget_unused(self) -> None:
        """Forget the channels without a stream and without a request lately."""
        since = self._clock.monotonic() - FORGET_S
        with self._lock:
            for wanted, each in list(self._found.items()):
                if not each.subscribers and each.used < since:
                    del self._found[wanted]

    def end_all(self) -> None:
        """End every stream."""
        for each in self.list_streamed():
            each.end_all()
