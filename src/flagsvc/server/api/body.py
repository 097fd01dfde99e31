"""From the bytes of a body to a JSON value, as the real server's parser reads it (import validation 1.1).

It stands before everything else, authentication included, and looks only at what calls itself `application/json`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from flagsvc.http import json_text
from flagsvc.http.call import Call
from flagsvc.http.json_text import whole
from flagsvc.http.media import CHARSETS, JSON, UTF8, WINDOWS, BodyTooLargeError, CodingError, unpack
from flagsvc.server.api.errors import ApiError, bare, too_large

LABELS = CHARSETS | {"utf-7": "utf-7"}
"""Charset label → codec."""

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


def content_type(head: Call) -> str:
    """Return the Content-Type as it was sent; empty without one."""
    return (head.content_type or b"").decode("latin-1").strip()


def is_json(head: Call) -> bool:
    """Return whether the body calls itself JSON, in any letter case and with any parameters."""
    return content_type(head).partition(";")[0].strip().lower() == JSON


def has_body(head: Call) -> bool:
    """Return whether a body comes with the request, be it an empty one."""
    return head.chunked or head.content_length is not None


def reading(head: Call, limit: int) -> BodyEncoding | None:
    """Return how to read the body of a request; None where none is read.

    Raises ApiError: 415 for a charset or a content coding that is not known, 413 for a body that says it is over `limit` bytes.
    """
    if not is_json(head) or not has_body(head):
        return None
    label = CHARSET.search(content_type(head))
    charset = label[1].lower() if label else UTF8
    if charset not in LABELS:
        raise bare(415, f'unsupported charset "{charset.upper()}"')
    coding = (head.content_encoding or b"").decode("latin-1").strip().lower() or "identity"
    if coding not in WINDOWS:
        raise bare(415, f'unsupported content encoding "{coding}"')
    length = head.content_length or b""
    if coding == "identity" and (len(length) > 18 or (length.isdigit() and int(length) > limit)):
        raise too_large()
    return BodyEncoding(WINDOWS[coding], LABELS[charset], limit)


def parse(how: BodyEncoding, body: bytes) -> Parsed:
    """Return the JSON value of a body, `{}` for an empty one. Raises ApiError or HttpError: 400 and 413."""
    text = unpacked(body, how)
    if len(text) > how.limit:
        raise too_large()
    if not text:
        return Parsed({})
    value = json_text.parse(text, how.codec, as_sent=True)
    unsure = how.codec != UTF8
    return Parsed(value, unsure or b"u0000" in text, unsure or HALF.search(text) is not None)


def unpacked(body: bytes, how: BodyEncoding) -> bytes:
    """Return a body without its content coding; gzip may have several members. Raises ApiError: 400 where it is damaged, 413."""
    try:
        return unpack(body, how.window, how.limit, members=True)
    except BodyTooLargeError:
        raise too_large() from None
    except CodingError as error:
        raise damaged(str(error)) from None


def damaged(reason: str) -> ApiError:
    """Return the 400 for a body that is not of its content coding, with zlib's own word for it."""
    if not reason:
        return bare(400, "unexpected end of file")
    return bare(400, reason.rpartition(": ")[2] if ": " in reason else "incorrect data")
