"""GET /api/client/delta and /api/client/streaming of the proxy: the changes since the document that an SDK has (dialects: Delta
and streaming).
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.delta import tag_of
from flagsvc.http.keys import KeyCheck
from flagsvc.http.messages import JSON, Response
from flagsvc.proxy.api.answers import NEVER, entity_headers
from flagsvc.proxy.api.route import DialectParts
from flagsvc.proxy.api.server_side import FilterReader
from flagsvc.proxy.api.stream_routes import Stream


class ClientDelta(Handler):
    """GET /api/client/delta: the changes, or the whole document for a caller whose document is unknown."""

    def __init__(self, parts: DialectParts) -> None:
        self.read_filter = FilterReader(parts.settings)
        self.scopes = parts.streams.deltas
        self.answers = parts.answers
        self.headers = parts.answers.headers(JSON, NEVER)

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the changes. An answer depends on what the caller has, so no cache keeps it. Raises HttpError (400, 429, 503)."""
        wanted = self.read_filter(call)
        identity, told = self.scopes.find(wanted, is_plain=wanted.is_plain).renew().answer(call.if_none_match)
        if told is None:
            return self.answers.not_modified(self.headers, tag_of(identity))
        content, fixed = told.body, self.headers.plain
        if call.accept_encoding is not None and self.answers.negotiator.wants_gzip(call.accept_encoding, len(content)):
            content, fixed = told.packed, self.headers.packed
        return Response(200, fixed, entity_headers(tag_of(identity), len(content)), content)


class ClientStreaming(Stream):
    """GET /api/client/streaming: the changes, as they come."""

    def __init__(self, parts: DialectParts) -> None:
        super().__init__(parts)
        self.read_filter = FilterReader(parts.settings)
        self.scopes = parts.streams.deltas
        self.key_check = KeyCheck(parts.keys.server, bearer=parts.answers.wire_format.reads_bearer)

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the stream. It lasts as long as the token counts. Raises HttpError (400, 429, 503)."""
        wanted = self.read_filter(call)
        scope = self.scopes.find(wanted, is_plain=wanted.is_plain, for_stream=True)
        scope.renew()
        key = self.key_check.read_key(call.key or b"")
        return self.open(call, scope, "", partial(self.key_check.accepted.contains, key))
