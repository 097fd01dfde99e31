"""From the bytes of a body to its text, for both programs: content codings and charsets."""

from __future__ import annotations

import zlib
from typing import NamedTuple

JSON = "application/json"
UTF8 = "utf-8"
UTF16 = "utf-16"
CHARSETS = {"utf-8": UTF8, "utf-16": UTF16, "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
"""Charset label → codec."""
GZIP = 31
WINDOWS = {"identity": 0, "gzip": GZIP, "deflate": 15}
"""Content coding → zlib's window bits with the format's wrapper; 0 is no coding."""


class Media(NamedTuple):
    """How the bytes of a body become text: zlib's window bits (0: not compressed) and a codec."""

    window: int
    codec: str


PLAIN = Media(0, UTF8)


class BodyTooLargeError(Exception):
    """A body has more bytes than it may have."""


class CodingError(Exception):
    """A body is not of its content coding; the message is zlib's, empty where it ends too early or something follows its end."""


def unpack(body: bytes, window: int, limit: int, *, members: bool = False) -> bytes:
    """Return the body without its content coding. Raises BodyTooLargeError over `limit` bytes, CodingError where it is damaged.

    With `members` a gzip body may have several members, and what follows the end of another coding does not count.
    """
    if not window:
        return body
    parts: list[bytes] = []
    room = limit
    while True:
        reader = zlib.decompressobj(window)
        try:
            part = reader.decompress(body, room + 1)
        except zlib.error as error:
            raise CodingError(str(error)) from None
        room -= len(part)
        if room < 0:
            raise BodyTooLargeError
        parts.append(part)
        body = reader.unused_data
        if not reader.eof or (body and not members):
            raise CodingError
        if not body or window != GZIP:
            return b"".join(parts)


def to_text(body: bytes, codec: str) -> str:
    """Return the text of a body without its byte order mark; what is no character becomes U+FFFD."""
    if codec == UTF16 and body[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        codec = "utf-16-be" if body[:1] == b"\0" else "utf-16-le"
    return body.decode(codec, "replace").removeprefix("\ufeff")
