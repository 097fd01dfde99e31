"""The configuration document as a server-side SDK asks for it: with fewer features, or with its segments inlined.

A document is made of the served document at the first request for it. It is kept until another document is served
(dialects: Documents of the proxy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from flagsvc.engine.document import segment_id
from flagsvc.engine.fragments import encode
from flagsvc.engine.parse import is_included, name_of, parse_segments
from flagsvc.engine.reading import Oddities
from flagsvc.engine.values.jsvalue import is_true
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.cache import CachedAnswer
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.configuration.prepare import BYTE_ORDER_MARK, META, decode

MAX_KEPT = 16
"""The most documents that are kept. For one more, all are dropped and made again."""
MAX_BYTES = 128 * 1024 * 1024
"""The bytes of kept documents above which all are dropped before a further document is made."""
MAX_INLINED = 256 * 1024 * 1024
"""The most bytes of segments that a document may have in the place of references to them, which are short."""
TOO_LARGE = "the document is too large with the constraints of its segments in their place; use an SDK that knows segments"
MARK = b'"segments"'
IMPOSSIBLE: object = {"contextName": "userId", "operator": "IN", "values": []}
"""The constraint in the place of a segment that the document does not have: it admits no user."""


class DocumentFilter(NamedTuple):
    """What a document contains: features of any of the `projects` (empty: all) whose name has the `prefix`.

    With `inline`, strategies hold the constraints of their segments.
    """

    projects: tuple[str, ...] = ()
    prefix: str = ""
    inline: bool = False

    def takes_all(self) -> bool:
        return self == DocumentFilter()

    def includes(self, feature: object) -> bool:
        """Return whether a feature passes the filters. A feature without a project belongs to any."""
        project = feature.get("project") if self.projects and isinstance(feature, dict) else None
        return is_included(feature, None, self.prefix) and (project is None or project in self.projects)

    def query(self) -> dict[str, object]:
        """Return the members that the filters add to the document's member `query`."""
        filters = {"project": list(self.projects), "namePrefix": self.prefix}
        return {name: value for name, value in filters.items() if value} | {"inlineSegmentConstraints": self.inline}


class ClientDocuments:
    """Makes the documents of one configuration, and keeps them until the configuration changes."""

    def __init__(self) -> None:
        self.served: ConfigurationDocument | None = None
        self.kept: dict[DocumentFilter, CachedAnswer] = {}

    def find(self, served: ConfigurationDocument, wanted: DocumentFilter) -> CachedAnswer:
        """Return the document for a filter, with its entity tag."""
        if served is not self.served or len(self.kept) >= MAX_KEPT:
            self.served = served
            self.kept = {}
        found = self.kept.get(wanted)
        if found is None:
            if sum(len(each.whole) for each in self.kept.values()) > MAX_BYTES:
                self.kept = {}
            found = self.kept[wanted] = CachedAnswer(make_tag(served, wanted), make_body(served.body, wanted), [])
        return found


def make_tag(served: ConfigurationDocument, wanted: DocumentFilter) -> bytes:
    """Return the entity tag of a document: that of the served one, and a digest of the filter.

    It is weak, because compression changes the bytes.
    """
    tag = served.etag.removeprefix("W/").strip('"')
    if not wanted.takes_all():
        tag += f"-{sha256(repr(wanted).encode()).hexdigest()[:8]}"
    return f'W/"{tag}"'.encode("latin-1")


def make_body(body: bytes, wanted: DocumentFilter) -> bytes:
    """Return the JSON of the document for a filter. What a filter has changed has no `meta`: its digest is another one."""
    if wanted.takes_all():
        return body
    top: dict[str, Any] = {**split(body)}
    features, _ = select_items(top, wanted)
    if wanted.inline:
        top.pop("segments", None)
    top.pop(META, None)
    query = value_of(top["query"]) if "query" in top else {}
    return encode(top | {"features": features, "query": (query if isinstance(query, dict) else {}) | wanted.query()})


def select_content(body: bytes, wanted: DocumentFilter) -> tuple[list[msgspec.Raw], list[msgspec.Raw]]:
    """Return the features and the segments of the document for a filter, not decoded."""
    return select_items(split(body), wanted)


def select_items(top: Mapping[str, msgspec.Raw], wanted: DocumentFilter) -> tuple[list[msgspec.Raw], list[msgspec.Raw]]:
    """Return the features and the segments for a filter, of the members of a document. Raises HttpError (500) as `SegmentIndex`."""
    features, segments = items_of(top.get("features")), items_of(top.get("segments"))
    if wanted.projects or wanted.prefix:
        features = [raw for raw in features if wanted.includes(value_of(raw))]
    if not wanted.inline:
        return features, segments
    index = SegmentIndex(segments)
    return [inline_segments(raw, index) for raw in features], []


def find_feature(body: bytes, name: str) -> bytes | None:
    """Return the JSON of one feature of a document, with the constraints of its segments; None if there is no such feature."""
    top = split(body)
    for raw in items_of(top.get("features")):
        feature = value_of(raw)
        if isinstance(feature, dict) and name_of(feature) == name:
            return bytes(inline_segments(raw, SegmentIndex(items_of(top.get("segments")))))
    return None


def split(body: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a document, not decoded."""
    try:
        return msgspec.json.decode(body.removeprefix(BYTE_ORDER_MARK), type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        document = decode(body)
        return {name: msgspec.Raw(encode(value)) for name, value in document.items()} if isinstance(document, dict) else {}


def items_of(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    """Return the items of a JSON list, not decoded; none if it is no list."""
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        value = value_of(raw)
        return [msgspec.Raw(encode(item)) for item in value] if isinstance(value, list) else []


def value_of(raw: msgspec.Raw) -> object:
    return decode(bytes(raw))


class SegmentIndex:
    """The constraints of a document's segments by id, to be put into strategies. They may take MAX_INLINED bytes there."""

    def __init__(self, items: Iterable[msgspec.Raw]) -> None:
        self.room = MAX_INLINED
        self.known: dict[str, tuple[list[object], int]] = {}
        for item in items:
            each = value_of(item)
            if isinstance(each, dict):
                self.known[segment_id(each, "")] = constraints_of(each, fails=(int, float)), len(memoryview(item))

    def take(self, identity: str) -> list[object]:
        """Return the constraints of a segment; of a missing one the IMPOSSIBLE. Raises HttpError (500) if there is no room left."""
        constraints, size = self.known.get(identity, ([IMPOSSIBLE], 0))
        self.room -= size
        if self.room < 0:
            raise HttpError(500, TOO_LARGE, [])
        return constraints


def inline_segments(raw: msgspec.Raw, segments: SegmentIndex) -> msgspec.Raw:
    """Return a feature whose strategies hold the constraints of their segments. A segment that is missing admits no user.

    Raises HttpError (500) as `SegmentIndex.take` does.
    """
    feature = value_of(raw) if MARK in bytes(raw) else None
    strategies = feature.get("strategies") if isinstance(feature, dict) else None
    if not isinstance(strategies, list):
        return raw
    for strategy in strategies:
        named = strategy.pop("segments", None) if isinstance(strategy, dict) else None
        if identities := parse_segments(named, "", Oddities()):
            own = constraints_of(strategy)
            strategy["constraints"] = [*own, *chain.from_iterable(map(segments.take, identities))]
    return msgspec.Raw(encode(feature))


def constraints_of(owner: dict[str, Any], fails: tuple[type, ...] = ()) -> list[object]:
    """Return the constraints of a strategy or a segment. A value that the engine takes for a constraint that never holds is the
    IMPOSSIBLE.

    `fails` are types of which no value can be none.
    """
    constraints = owner.get("constraints")
    if isinstance(constraints, list):
        return constraints
    return [IMPOSSIBLE] if is_true(constraints) or isinstance(constraints, fails) else []
