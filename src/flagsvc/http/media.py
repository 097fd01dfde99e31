"""Decodes the bytes of a body into text, for both programs: content codings and charsets."""

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
PIECE = 4096
"""How many bytes are decompressed at once. zlib copies what follows a member, so only a piece may follow."""


class Media(NamedTuple):
    """How to decode a body: zlib's window bits (0: not compressed) and a codec."""

    window: int
    codec: str


PLAIN = Media(0, UTF8)


class BodyTooLargeError(Exception):
    """A body has more bytes than its limit."""


class CodingError(Exception):
    """A body cannot be decompressed. The message is zlib's; empty if the body ends too early or bytes follow its end."""


def unpack(body: bytes, window: int, limit: int, *, members: bool = False) -> bytes:
    """Return the decompressed body. Raises BodyTooLargeError over `limit` bytes, and CodingError for damaged data.

    With `members` a gzip body may have several members, and bytes after the end of another coding are ignored.
    """
    if not window:
        return body
    parts: list[bytes] = []
    room = limit
    at = 0
    reader = zlib.decompressobj(window)
    while True:
        piece = body[at : at + PIECE]
        try:
            part = reader.decompress(piece, room + 1)
        except zlib.error as error:
            raise CodingError(str(error)) from None
        room -= len(part)
        if room < 0:
            raise BodyTooLargeError
        parts.append(part)
        at += len(piece) - len(reader.unused_data)
        rest = at < len(body)
        if (not rest and not reader.eof) or (rest and reader.eof and not members):
            raise CodingError
        if not rest or (reader.eof and window != GZIP):
            return b"".join(parts)
        if reader.eof:
            reader = zlib.decompressobj(window)


def to_text(body: bytes, codec: str) -> str:
    """Return the text of a body without its byte order mark. Invalid bytes become U+FFFD."""
    if codec == UTF16 and body[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        codec = "utf-16-be" if body[:1] == b"\0" else "utf-16-le"
    return body.decode(codec, "replace").removeprefix("\ufeff")
