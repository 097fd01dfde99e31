"""The responses of the proxy. Their fixed headers are made once (specification: Endpoints; Errors). Compiled.

Cross-origin resource sharing follows the rules of npm `cors` 2.8 (behaviour: CORS). `Cors` decides everything that depends only on
options. It checks the Origin of a request only if origins are a list.
"""

from __future__ import annotations

import re
from typing import Final

from flagsvc.http.call import Call
from flagsvc.http.compression import Negotiator, gzip
from flagsvc.http.etag import etag, matches
from flagsvc.http.messages import HTML, JSON, POST, TEXT, Headers, HttpError, Response
from flagsvc.proxy.api.cache import CachedAnswer
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.wire_format import WireFormat

ALLOW_ORIGIN: Final = b"access-control-allow-origin"
ALLOW_HEADERS: Final = b"access-control-allow-headers"
ANY_ORIGIN: Final = "*"
WILDCARD: Final = "[A-Za-z0-9._-]+"
"""The characters that a `*` inside an origin stands for: one or more labels of a host, or a port."""
NAMES: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]+")
"""Names of headers, separated by commas. Only such text is sent back, so that no line end can be."""


class Cors:
    """The CORS headers of every answer and of a preflight.

    `fixed` are the headers of every answer except a preflight's. `dynamic` tells that Access-Control-Allow-Origin depends on the
    request. `vary` are the request headers that an answer depends on.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        origin = settings.cors_origin
        self.origins: frozenset[bytes] = frozenset()
        self.patterns: list[re.Pattern[bytes]] = []
        self.dynamic: bool = not isinstance(origin, str)
        self.vary: tuple[bytes, ...] = () if origin == ANY_ORIGIN else (b"Origin",)
        first: Headers = [] if not isinstance(origin, str) else [(ALLOW_ORIGIN, origin.encode())]
        if not isinstance(origin, str):
            self.origins = frozenset(each.encode() for each in origin if "*" not in each)
            self.patterns = [compile_origin(each) for each in origin if "*" in each]
        if settings.cors_credentials:
            first.append((b"access-control-allow-credentials", b"true"))
        exposed: Headers = text_header(b"access-control-expose-headers", ", ".join(settings.cors_exposed_headers))
        self.fixed: Headers = first + exposed
        self.preflight_fixed: Headers = (
            first
            + text_header(b"access-control-allow-methods", ", ".join(settings.cors_methods))
            + text_header(ALLOW_HEADERS, ", ".join(settings.cors_allowed_headers))
            + text_header(b"access-control-max-age", str(settings.cors_max_age))
            + exposed
        )
        self.repeats: bool = not settings.cors_allowed_headers
        asked: tuple[bytes, ...] = (b"Access-Control-Request-Headers",) if self.repeats else ()
        self.preflight_vary: tuple[bytes, ...] = self.vary + asked
        if self.preflight_vary:
            self.preflight_fixed.append((b"vary", b", ".join(self.preflight_vary)))

    def allows(self, origin: bytes) -> bool:
        """Return whether the list of origins and patterns contains `origin`."""
        if origin in self.origins:
            return True
        return any(pattern.fullmatch(origin) is not None for pattern in self.patterns)

    def headers_for(self, origin: bytes | None) -> Headers:
        """Return the headers of an answer that depend on the request's Origin."""
        if self.dynamic and origin is not None and self.allows(origin):
            return [(ALLOW_ORIGIN, origin)]
        return []

    def preflight_headers_for(self, origin: bytes | None, requested: bytes | None) -> Headers:
        """Return the headers of a preflight's answer that depend on its Origin and Access-Control-Request-Headers."""
        headers = self.headers_for(origin)
        if self.repeats and requested and NAMES.fullmatch(requested) is not None:
            headers.append((ALLOW_HEADERS, requested))
        return headers


def compile_origin(pattern: str) -> re.Pattern[bytes]:
    """Return the expression for an origin with wildcards.

    The text after a wildcard matches where it is found first, without backtracking, so that the time is linear in the length of any
    origin. No match is missed: text that a wildcard cannot match can be in only one place.
    """
    first, *middle, last = (re.escape(part) for part in pattern.split("*"))
    written = first + "".join([f"(?>{WILDCARD}?{part})" for part in middle]) + WILDCARD + last
    return re.compile(written.encode())


def text_header(name: bytes, value: str) -> Headers:
    return [(name, value.encode("latin-1"))] if value else []


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
        return Response(202, self.accepted, [(b"content-length", b"0")], b"")

    def refusal(self, call: Call, refused: HttpError, own: Headers) -> Response:
        """Return the response for an error. No cache may keep it."""
        form = self.wire_format
        headers = self.text if refused.status in form.text_statuses else self.error
        return self.make_response(refused.status, headers, call, form.error_body(refused, self.key_header), own)


def entity_headers(tag: bytes, length: int) -> Headers:
    """Return the header fields that belong to one answer: entity tag and length."""
    return [(b"etag", tag), (b"content-length", str(length).encode())]
