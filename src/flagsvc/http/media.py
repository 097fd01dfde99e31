"""What a body may be: its media type, charset and content coding (behaviour: Statuses and bodies)."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from flagsvc.http.limits import BODY
from flagsvc.http.messages import Refused

JSON = "application/json"
UTF8 = "utf-8"
UTF16 = "utf-16"
CHARSETS = {"utf-8": UTF8, "utf8": UTF8, "utf-16": UTF16, "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
"""Charset label → codec. Like the reference's, the body of any other charset is refused."""

WINDOW = {"": 0, "identity": 0, "gzip": 31, "x-gzip": 31, "deflate": 15}
"""Content coding → zlib's window bits with the format's wrapper; 0 is no coding."""


class Media(NamedTuple):
    """How the bytes of a body become text: zlib's window bits (0: not compressed) and a codec."""

    window: int
    codec: str


PLAIN = Media(0, UTF8)


def media(content_type: bytes | None, content_encoding: bytes | None) -> Media:
    """Return how to read a body with these headers; raises Refused (415). A missing Content-Type is read as JSON."""
    coding = (content_encoding or b"").decode("latin-1").strip().lower()
    window = WINDOW.get(coding)
    if window is None:
        raise Refused(415, f"the content coding `{coding[:100]}` is not known, only gzip and deflate are", [])
    return Media(window, charset(content_type.decode("latin-1"))) if content_type else Media(window, UTF8)


def charset(content_type: str) -> str:
    """Return the codec that a Content-Type asks for; raises Refused (415) for any other media type or charset."""
    name, *parameters = content_type.split(";")
    if name.strip().lower() not in ("", JSON):
        raise Refused(415, f"the media type `{name.strip()[:100]}` is not read, only {JSON} is", [])
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        label = value.strip().strip('"')
        if key.strip().lower() == "charset" and label:
            return codec(label)
    return UTF8


def codec(label: str) -> str:
    """Return the codec of a charset label; raises Refused (415) for one that is not known."""
    found = CHARSETS.get(label.lower())
    if found is None:
        raise Refused(415, f"the charset `{label[:100]}` is not known, only utf-8 and utf-16 are", [])
    return found


def unpack(body: bytes, window: int, limit: int) -> bytes:
    """Return the body without its content coding; raises Refused: 413 over `limit` bytes, 400 where it is damaged."""
    if not window:
        return body
    reader = zlib.decompressobj(window)
    try:
        text = reader.decompress(body, limit + 1)
    except zlib.error:
        raise Refused(400, "the body is not of the content coding it claims", []) from None
    if len(text) > limit:
        raise too_large(limit)
    if not reader.eof or reader.unused_data:
        raise Refused(400, "the body is not of the content coding it claims", [])
    return text


def too_large(limit: int) -> Refused:
    """Return the 413 for a body over `limit` bytes."""
    return Refused(413, f"the body is larger than {limit} bytes", [], BODY)


def to_text(body: bytes, codec: str) -> str:
    """Return the text of a body without its byte order mark; what is no character becomes U+FFFD."""
    if codec == UTF16 and body[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        codec = "utf-16-be" if body[:1] == b"\0" else "utf-16-le"
    return body.decode(codec, "replace").removeprefix("\ufeff")
