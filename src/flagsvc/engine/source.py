"""The pieces of a configuration document before they are looked at: its features and segments, decoded or still as bytes.

Where they are bytes, those that did not change since the last document need not even be decoded.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from flagsvc.core.errors import DocumentError
from flagsvc.engine.parse import as_list, as_object, wrong


class Unusual(Exception):  # noqa: N818 - nothing is wrong, another way has to be taken
    """A document that is not decoded yet holds what the strict decoder refuses, which need not mean that it is no JSON."""


TOP: Final = msgspec.defstruct(
    "Top", [("features", list[msgspec.Raw]), ("segments", list[msgspec.Raw] | None, None)], module=__name__
)
"""The outermost object of a document, its features and segments left as bytes. Not a class statement: those lose their types when
they are compiled."""


class DocumentParts:
    """The features and segments of a document in their order; each a decoded value, or `raw`: the JSON of it."""

    def __init__(self, features: list[object], segments: list[object], raw: bool) -> None:
        self.features = features
        self.segments = segments
        self.raw = raw

    def decoded(self, item: object) -> object:
        """Return a feature or segment decoded. Raises a msgspec.MsgspecError or UnicodeDecodeError where that is refused."""
        return msgspec.json.decode(item) if self.raw else item  # type: ignore[call-overload]


def source_of(document: object) -> DocumentParts:
    """Return the pieces of a decoded document.

    Raises DocumentError when the document is not an object with a list `features`, or its `segments` are no list.
    """
    top = as_object(document, "")
    if not isinstance(top.get("features"), list):
        raise DocumentError("features", wrong("a list", top.get("features")))
    return DocumentParts(as_list(top, "features", ""), as_list(top, "segments", ""), False)


def split(text: bytes) -> DocumentParts | None:
    """Return the pieces of the JSON of a document, not decoded; None where it is unusual, and must be decoded as a whole.

    What is passed over is known to be JSON, but for a number beyond all doubles or a lone surrogate, which only decoding finds.
    """
    try:
        if not text.isascii():
            text.decode()
        top: Any = msgspec.json.decode(text, type=TOP)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    features: list[object] = list(top.features)
    segments: list[object] = [] if top.segments is None else list(top.segments)
    return DocumentParts(features, segments, True)
