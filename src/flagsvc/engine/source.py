"""The features and segments of a configuration document before compilation, decoded or still as bytes.

Pieces of bytes that are unchanged since the last document are not even decoded.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from flagsvc.core.errors import DocumentError
from flagsvc.core.state_export import about_state_export
from flagsvc.engine.reading import as_list, as_object, wrong


class Unusual(Exception):  # noqa: N818 - nothing is wrong, another way has to be taken
    """A document that is not decoded yet contains what the strict decoder refuses. It may still be valid JSON."""


DATA_SET: Final = "featureStrategies"
"""A member of a data set and of a state export. Their features have no strategies: every flag would be off."""
TOP: Final = msgspec.defstruct(
    "Top",
    [
        ("features", list[msgspec.Raw]),
        ("segments", list[msgspec.Raw] | None, None),
        (DATA_SET, None, None),  # so a data set is unusual, is decoded as a whole, and refused
    ],
    module=__name__,
)
"""The outermost object of a document.

Its features and segments stay bytes. It is not a class statement, because compilation would lose the types.
"""


class DocumentParts:
    """The features and segments of a document in their order. Each is a decoded value, or `raw`: its JSON."""

    def __init__(self, features: list[object], segments: list[object], raw: bool) -> None:
        self.features = features
        self.segments = segments
        self.raw = raw

    def decoded(self, item: object) -> object:
        """Return a feature or segment, decoded. Raises msgspec.MsgspecError or UnicodeDecodeError."""
        return msgspec.json.decode(item) if self.raw else item  # type: ignore[call-overload]


def source_of(document: object) -> DocumentParts:
    """Return the pieces of a decoded document.

    Raises DocumentError if the document is not an object with a list `features`, or `segments` is not a list, and for a data set.
    """
    top = as_object(document, "")
    if top.get(DATA_SET) is not None:
        text = "is a data set, as `flagsvc export` writes it, and no client-features document"
        raise DocumentError("", f"it {about_state_export(top) or text}")
    if not isinstance(top.get("features"), list):
        raise DocumentError("features", wrong("a list", top.get("features")))
    return DocumentParts(as_list(top, "features", ""), as_list(top, "segments", ""), False)


def split(text: bytes) -> DocumentParts | None:
    """Return the pieces of a document's JSON, not decoded; None if it is unusual, and must be decoded as a whole.

    The skipped text is valid JSON, except that only decoding finds a number beyond all doubles or a lone surrogate.
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
