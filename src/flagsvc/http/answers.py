"""A handler's answer, and the response on the wire for it: JSON, entity tag, 304, gzip (import validation 1.3)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from flagsvc.http.call import Call
from flagsvc.http.compression import Negotiator, gzip
from flagsvc.http.etag import etag
from flagsvc.http.messages import HEAD, JSON, Headers, Response
from flagsvc.http.parts import Parts, PartsResponse
from flagsvc.http.shapes.text import to_json

PLAIN_JSON = b"application/json"
VARY = (b"vary", b"Accept-Encoding")
WITHOUT_BODY = (204, 304)


NEGOTIATOR: Final = Negotiator()


@dataclass(frozen=True)
class Answer:
    """A handler's answer: `body` is a JSON value, bytes of the route's media type, or None for no body.

    `gzipped` is the gzip form of a body of bytes, and `tag` its entity tag, if the handler has them. `parts` are a body that comes
    over time.
    """

    body: Any = None
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    gzipped: bytes | None = None
    tag: bytes | None = None
    parts: Parts | None = None


def respond(head: Call, answer: Answer, media: bytes = PLAIN_JSON) -> Response:
    """Return the response to a request. Safe in any thread."""
    headers: Headers = [*answer.headers]
    if answer.parts is not None:
        if head.request.method == HEAD:
            return Response(answer.status, headers, [], b"")
        return PartsResponse(answer.status, headers, [], answer.parts)
    headers.append(VARY)
    if answer.body is None:
        if answer.status not in WITHOUT_BODY:
            headers.append((b"content-length", b"0"))
        return Response(answer.status, headers, [], b"")
    body = answer.body if isinstance(answer.body, bytes) else encode(answer.body)
    tag = etag(body) if answer.tag is None else answer.tag
    headers.append((b"etag", tag))
    if answer.status == 200 and is_known(head, tag):
        return Response(304, headers, [], b"")
    if head.accept_encoding is not None and NEGOTIATOR.wants_gzip(head.accept_encoding, len(body)):
        body = gzip(body) if answer.gzipped is None else answer.gzipped
        headers.append((b"content-encoding", b"gzip"))
    if not any(name == b"content-type" for name, _ in headers):
        headers.append((b"content-type", JSON if media == PLAIN_JSON else media))
    headers.append((b"content-length", str(len(body)).encode()))
    return Response(answer.status, headers, [], b"" if head.request.method == HEAD else body)


def is_known(head: Call, tag: bytes) -> bool:
    """Return whether a GET or HEAD has, in its If-None-Match, the body with this entity tag; compared weakly."""
    condition = head.if_none_match
    if condition is None or head.request.method not in (b"GET", HEAD):
        return False
    bare = tag.removeprefix(b"W/")
    return condition.strip() == b"*" or bare in (item.strip().removeprefix(b"W/") for item in condition.split(b","))


WHOLE_FLOAT: Final = re.compile(rb"\.0(?:[,\]}]|\Z)")
"""Matches the end of a whole number that is a float, and now and then a text."""


def encode(value: Any) -> bytes:
    """Return a JSON value as JavaScript writes it: whole numbers without a fraction, half a surrogate pair as an escape."""
    try:
        body = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return to_json(value).encode()
    return msgspec.json.encode(whole(value)) if WHOLE_FLOAT.search(body) else body


def whole(value: Any) -> Any:
    """Return a JSON value with every whole number that is a float as an integer."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: whole(each) for key, each in value.items()}
    return [whole(each) for each in value] if isinstance(value, list | tuple) else value
