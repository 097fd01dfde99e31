"""The responses of the proxy. Their fixed headers are made once (specification: Endpoints; Errors; behaviour: CORS). Compiled."""

from __future__ import annotations

from typing import Final

from flagsvc.http.call import Call
from flagsvc.http.compression import Negotiator, gzip
from flagsvc.http.etag import etag, matches
from flagsvc.http.messages import HTML, JSON, POST, TEXT, Headers, HttpError, Response
from flagsvc.proxy.api.cache import CachedAnswer
from flagsvc.proxy.api.cors import Cors
from flagsvc.proxy.api.wire_format import WireFormat

NEVER: Final = b"no-store"
KEPT_BY_ITS_OWNER: Final = b"private, no-cache"
"""
For an answer that depends on the key: no shared cache keeps it, and a private cache asks each time whether it is still current.
"""
ASK_AGAIN: Final = b"no-cache"


class ResponseHeaders:
    """The headers that all answers of one kind share: plain, compressed, and not modified (304)."""

    def __init__(self, cors: Cors, content_type: bytes, cache: bytes, vary: tuple[bytes, ...], more: Headers) -> None:
        lasting: Headers = list(cors.fixed)
        if cache:
            lasting.append((b"cache-control", cache))
        if cors.vary + vary:
            lasting.append((b"vary", b", ".join(cors.vary + vary)))
        lasting.extend(more)
        self.unchanged: Headers = lasting
        self.plain: Headers = [*lasting, (b"content-type", content_type)]
        self.packed: Headers = [*self.plain, (b"content-encoding", b"gzip")]


class Answers:
    """Makes the responses of one dialect. `key_header` is the header of keys, on which evaluation answers depend."""

    def __init__(self, cors: Cors, key_header: str, wire_format: WireFormat) -> None:
        self.cors = cors
        self.key_header = key_header
        self.wire_format = wire_format
        self.negotiator = Negotiator()
        self.compares_posts: bool = wire_format.compares_posts
        keyed = (b"Accept-Encoding", key_header.encode("latin-1"))
        self.evaluation = ResponseHeaders(cors, JSON, wire_format.cache_control, keyed, [])
        self.personal = ResponseHeaders(cors, JSON, wire_format.personal_cache_control, keyed, [])
        self.configuration = ResponseHeaders(cors, JSON, KEPT_BY_ITS_OWNER, keyed, [])
        self.html = self.headers(HTML, b"")
        self.text = self.headers(TEXT, NEVER)
        self.error = self.headers(JSON, NEVER)
        self.accepted: Headers = self.error.unchanged

    def headers(self, content_type: bytes, cache: bytes, more: Headers | None = None) -> ResponseHeaders:
        """Return the headers of a kind of answer that does not depend on the key."""
        return ResponseHeaders(self.cors, content_type, cache, (b"Accept-Encoding",), [] if more is None else more)

    def respond(self, headers: ResponseHeaders, call: Call, body: bytes, tag: bytes | None = None) -> Response:
        """Return the 200 with this body, or the 304 if the caller has it.

        `tag` is the entity tag; by default a hash of the body.
        """
        if tag is None:
            tag = etag(body)
        condition = self.condition(call)
        if condition is not None and matches(condition, tag):
            return self.not_modified(headers, tag)
        return self.make_response(200, headers, call, body, [(b"etag", tag)])

    def condition(self, call: Call) -> bytes | None:
        """Return the If-None-Match of a call, or None if it is missing or not read."""
        return call.if_none_match if self.compares_posts or call.request.method != POST else None

    def not_modified(self, headers: ResponseHeaders, tag: bytes) -> Response:
        return Response(304, headers.unchanged, [(b"etag", tag)], b"")

    def respond_cached(self, headers: ResponseHeaders, call: Call, entry: CachedAnswer) -> Response:
        """Return the 200 of a cached answer. Its compressed form is made once, when a caller accepts it and it is worthwhile."""
        accept = call.accept_encoding
        if accept is not None and self.negotiator.wants_gzip(accept, entry.length):
            if not entry.packed:
                entry.packed = gzip(entry.body)
                entry.compressed = entity_headers(entry.tag, len(entry.packed))
            return Response(200, headers.packed, entry.compressed.copy(), entry.packed)
        if not entry.plain:
            entry.plain = entity_headers(entry.tag, entry.length)
        if entry.pieces is not None:
            return Response(200, headers.plain, entry.plain.copy(), b"", entry.pieces.parts)
        return Response(200, headers.plain, entry.plain.copy(), entry.body)

    def make_response(self, status: int, headers: ResponseHeaders, call: Call, body: bytes, own: Headers) -> Response:
        """Return a response with this body, compressed if the caller accepts that and it is worthwhile."""
        fixed = headers.plain
        accept = call.accept_encoding
        if accept is not None and self.negotiator.wants_gzip(accept, len(body)):
            body = gzip(body)
            fixed = headers.packed
        own.append((b"content-length", str(len(body)).encode()))
        return Response(status, fixed, own, body)

    def respond_text(self, call: Call, text: str) -> Response:
        """Return a 200 with a short text that no cache may keep."""
        return self.make_response(200, self.text, call, text.encode(), [])

    def respond_accepted(self) -> Response:
        """Return a 202 without a body."""
        return Response(202, self.accepted, [(b"content-length", b"0")], b"")

    def refusal(self, call: Call, refused: HttpError, own: Headers) -> Response:
        """Return the response for an error. No cache may keep it."""
        form = self.wire_format
        headers = self.text if refused.status in form.text_statuses else self.error
        return self.make_response(refused.status, headers, call, form.error_body(refused, self.key_header), own)


def entity_headers(tag: bytes, length: int) -> Headers:
    """Return the header fields that belong to one answer: entity tag and length."""
    return [(b"etag", tag), (b"content-length", str(length).encode())]
