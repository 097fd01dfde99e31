"""Parses the bytes of a body into a JSON value, as the real server's parser does (import validation 1.1).

It parses only bodies whose Content-Type is `application/json`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from flagsvc.http import json_text
from flagsvc.http.call import Call
from flagsvc.http.json_text import whole
from flagsvc.http.media import CHARSETS, JSON, UTF8, WINDOWS, BodyTooLargeError, CodingError, unpack
from flagsvc.pages.forms import FORM, Form, find_boundary, parse_form, parse_multipart
from flagsvc.server.api.errors import ApiError, bare, too_large

LABELS = CHARSETS | {"utf-7": "utf-7"}
"""Charset label → codec."""

HALF = re.compile(rb"u[dD][89a-fA-F]")
"""Matches the escape of half a surrogate pair, without its backslash."""
CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]+)', re.IGNORECASE)


class BodyEncoding(NamedTuple):
    """How to decode a body: zlib's window bits, the codec of the text, the most bytes of the body, whether it is a form.

    `boundary` is what separates the parts of a form with a file.
    """

    window: int
    codec: str
    limit: int
    form: bool = False
    boundary: str = ""


class Parsed(NamedTuple):
    """The JSON value of a body as it was sent, and whether a text in it may contain a NUL or half a surrogate pair; or a form.

    In UTF-8 JSON, only escapes can produce them, so the parser looks for these escapes.
    """

    value: Any
    may_hold_nul: bool = False
    may_hold_halves: bool = False
    form: Form | None = None

    def stored(self, value: Any) -> Any:
        """Return a value in the form that databases can store: half a surrogate pair becomes U+FFFD."""
        return whole(value) if self.may_hold_halves else value


EMPTY = Parsed({})


def content_type(head: Call) -> str:
    """Return the Content-Type as it was sent; empty without one."""
    return (head.content_type or b"").decode("latin-1").strip()


def is_json(head: Call) -> bool:
    """Return whether the Content-Type is JSON, in any letter case and with any parameters."""
    return content_type(head).partition(";")[0].strip().lower() == JSON


def has_body(head: Call) -> bool:
    """Return whether the request has a body; an empty body counts."""
    return head.chunked or head.content_length is not None


def is_form(head: Call) -> bool:
    """Return whether the Content-Type is that of a form, with or without files."""
    sent = content_type(head)
    return sent.partition(";")[0].strip().lower() == FORM or bool(find_boundary(sent))


def reading(head: Call, limit: int, *, forms: bool = False) -> BodyEncoding | None:
    """Return how to read the body of a request; None if the server does not read the body. Forms are read where `forms` says so.

    Raises ApiError: 415 for an unknown charset or content coding, 413 for a Content-Length over `limit` bytes.
    """
    form = forms and is_form(head)
    if not (form or is_json(head)) or not has_body(head):
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
    return BodyEncoding(WINDOWS[coding], LABELS[charset], limit, form, find_boundary(content_type(head)))


def parse(how: BodyEncoding, body: bytes) -> Parsed:
    """Return the JSON value of a body; `{}` for an empty body. Raises ApiError or HttpError (400, 413)."""
    text = unpacked(body, how)
    if len(text) > how.limit:
        raise too_large()
    if how.form:
        return Parsed({}, form=parse_multipart(text, how.boundary) if how.boundary else parse_form(text))
    if not text:
        return Parsed({})
    value = json_text.parse(text, how.codec, as_sent=True)
    unsure = how.codec != UTF8
    return Parsed(value, unsure or b"u0000" in text, unsure or HALF.search(text) is not None)


def unpacked(body: bytes, how: BodyEncoding) -> bytes:
    """Return the unpacked body; gzip may have several members. Raises ApiError: 400 for a damaged body, 413 for a too large one."""
    try:
        return unpack(body, how.window, how.limit, members=True)
    except BodyTooLargeError:
        raise too_large() from None
    except CodingError as error:
        raise damaged(str(error)) from None


def damaged(reason: str) -> ApiError:
    """Return the 400 for a body that cannot be unpacked, with the reason that zlib gives."""
    if not reason:
        return bare(400, "unexpected end of file")
    return bare(400, reason.rpartition(": ")[2] if ": " in reason else "incorrect data")
