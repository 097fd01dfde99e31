"""From a handler's answer to the response on the wire: JSON, entity tag, 304, gzip (import validation 1.3)."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from flagsvc.http.answers import Answer
from flagsvc.http.call import Call
from flagsvc.http.compression import Negotiator, gzip
from flagsvc.http.etag import etag
from flagsvc.http.messages import HEAD, JSON, Headers, Response
from flagsvc.http.shapes.text import to_json
from flagsvc.pages.live import in_parts
from flagsvc.server.api.errors import ApiError

PLAIN_JSON = b"application/json"
VARY = (b"vary", b"Accept-Encoding")
WITHOUT_BODY = (204, 304)


class Answers:
    """Makes responses. Used from any thread."""

    def __init__(self) -> None:
        self._negotiator = Negotiator()

    def respond(self, head: Call, answer: Answer, media: bytes = PLAIN_JSON) -> Response:
        """Return the response to a request."""
        if answer.parts is not None:
            return in_parts(head.request.method, list(answer.headers), answer.parts)
        headers: Headers = [*answer.headers, VARY]
        if answer.body is None:
            if answer.status not in WITHOUT_BODY:
                headers.append((b"content-length", b"0"))
            return Response(answer.status, headers, [], b"")
        body = answer.body if isinstance(answer.body, bytes) else encode(answer.body)
        tag = etag(body) if answer.tag is None else answer.tag
        headers.append((b"etag", tag))
        if answer.status == 200 and is_known(head, tag):
            return Response(304, headers, [], b"")
        if head.accept_encoding is not None and self._negotiator.wants_gzip(head.accept_encoding, len(body)):
            body = gzip(body) if answer.gzipped is None else answer.gzipped
            headers.append((b"content-encoding", b"gzip"))
        if not any(name == b"content-type" for name, _ in headers):
            headers.append((b"content-type", JSON if media == PLAIN_JSON else media))
        headers.append((b"content-length", str(len(body)).encode()))
        return Response(answer.status, headers, [], b"" if head.request.method == HEAD else body)

    def fail(self, head: Call, failure: ApiError) -> Response:
        """Return the response that is an error."""
        return self.respond(head, Answer(failure.body, failure.status, tuple(failure.headers)))


def is_known(head: Call, tag: bytes) -> bool:
    """Return whether a GET or HEAD has, in its If-None-Match, the body with this entity tag; compared weakly."""
    condition = head.if_none_match
    if condition is None or head.request.method not in (b"GET", HEAD):
        return False
    bare = tag.removeprefix(b"W/")
    return condition.strip() == b"*" or bare in (item.strip().removeprefix(b"W/") for item in condition.split(b","))


def encode(value: Any) -> bytes:
    """Return a JSON value as JavaScript writes it: whole numbers without a fraction, half a surrogate pair as an escape."""
    try:
        body = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return to_json(value).encode()
    return msgspec.json.encode(whole(value)) if b".0" in body else body


def whole(value: Any) -> Any:
    """Return a JSON value with every whole number that is a float as an integer."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: whole(each) for key, each in value.items()}
    return [whole(each) for each in value] if isinstance(value, list | tuple) else value
