"""From the bytes of a body to a JSON value, as the real server's parser reads it (import validation 1.1).

It stands before everything else, authentication included, and looks only at what calls itself `application/json`.
"""

from __future__ import annotations

import re
import zlib
from typing import Any, NamedTuple

from flagsvc.http.body import read_json, whole
from flagsvc.http.call import Call as Head
from flagsvc.http.media import Media
from flagsvc.http.messages import Refused
from flagsvc.server.api.errors import Failure, bare, too_deep, too_large

JSON = "application/json"
CHARSETS = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "utf-7": "utf-7"}
"""Charset label → codec."""
CODINGS = {"identity": 0, "gzip": 31, "deflate": 15}
"""Content coding → zlib's window bits with the format's wrapper; 0 is no coding."""

HALF = re.compile(rb"u[dD][89a-fA-F]")
"""What the escape of half a surrogate pair holds."""
CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]+)', re.IGNORECASE)


class BodyEncoding(NamedTuple):
    """How a body becomes a value: zlib's window bits, a codec, and the most bytes it may have when unpacked."""

    window: int
    codec: str
    limit: int


class Parsed(NamedTuple):
    """The JSON value of a body as it was sent, and whether any text in it may hold a NUL or half a surrogate pair: only their
    escapes can bring one in."""

    value: Any
    may_hold_nul: bool = False
    may_hold_halves: bool = False

    def stored(self, value: Any) -> Any:
        """Return the value, or its coerced form, as databases take it: half a surrogate pair becomes U+FFFD."""
        return whole(value) if self.may_hold_halves else value


EMPTY = Parsed({})


def content_type(head: Head) -> str:
    """Return the Content-Type as it was sent; empty without one."""
    return (head.content_type or b"").decode("latin-1").strip()


def is_json(head: Head) -> bool:
    """Return whether the body calls itself JSON, in any letter case and with any parameters."""
    return content_type(head).partition(";")[0].strip().lower() == JSON


def has_body(head: Head) -> bool:
    """Return whether a body comes with the request, be it an empty one."""
    return head.chunked or head.content_length is not None


def reading(head: Head, limit: int) -> BodyEncoding | None:
    """Return how to read the body of a request; None where none is read.

    Raises Failure: 415 for a charset or a content coding that is not known, 413 for a body that says it is over `limit` bytes.
    """
    if not is_json(head) or not has_body(head):
        return None
    label = CHARSET.search(content_type(head))
    charset = label[1].lower() if label else "utf-8"
    if charset not in CHARSETS:
        raise bare(415, f'unsupported charset "{charset.upper()}"')
    coding = (head.content_encoding or b"").decode("latin-1").strip().lower() or "identity"
    if coding not in CODINGS:
        raise bare(415, f'unsupported content encoding "{coding}"')
    length = head.content_length or b""
    if coding == "identity" and (len(length) > 18 or (length.isdigit() and int(length) > limit)):
        raise too_large()
    return BodyEncoding(CODINGS[coding], CHARSETS[charset], limit)


def parse(how: BodyEncoding, body: bytes) -> Parsed:
    """Return the JSON value of a body, `{}` for an empty one. Raises Failure: 400 and 413."""
    text = inflate(body, how.window, how.limit) if how.window else body
    if len(text) > how.limit:
        raise too_large()
    try:
        value = read_json(text, Media(0, how.codec), how.limit, as_sent=True)
    except Refused as error:
        raise bare(error.status, error.message) from None
    except RecursionError:
        raise too_deep() from None
    unsure = how.codec != "utf-8"
    return Parsed(value, unsure or b"u0000" in text, unsure or HALF.search(text) is not None)


def inflate(body: bytes, window: int, limit: int) -> bytes:
    """Return a body without its content coding; gzip may have several members. Raises Failure: 400 where it is damaged, 413."""
    parts: list[bytes] = []
    room = limit
    while True:
        reader = zlib.decompressobj(window)
        part = unpacked(reader, body, room + 1)
        room -= len(part)
        if room < 0:
            raise too_large()
        parts.append(part)
        if not reader.eof:
            raise bare(400, "unexpected end of file")
        body = reader.unused_data
        if not body or window != CODINGS["gzip"]:
            return b"".join(parts)


def unpacked(reader: Any, body: bytes, most: int) -> bytes:
    """Return what a decompressor makes of a body, `most` bytes at the most. Raises Failure (400)."""
    try:
        text: bytes = reader.decompress(body, most)
    except zlib.error as error:
        raise damaged(str(error)) from None
    return text


def damaged(reason: str) -> Failure:
    """Return the 400 for a body that is not of its content coding, with zlib's own word for it."""
    word = reason.rpartition(": ")[2] if ": " in reason else "incorrect data"
    return bare(400, word)
