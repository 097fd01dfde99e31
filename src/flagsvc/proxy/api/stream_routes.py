"""The routes of event streams (dialects: Event streams; Delta and streaming).

A page has the key in the header or a ticket in the URL, and may have the JavaScript module that follows a stream. A service gets
the changes since its document, on request or as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Final

from flagsvc.http.call import LAST_EVENT_ID, Answer, Call, Handler
from flagsvc.http.delta import tag_of
from flagsvc.http.keys import KeyCheck
from flagsvc.http.messages import HEAD, JSON, HttpError, Response
from flagsvc.http.parts import PartsResponse
from flagsvc.http.reached_limits import STREAMS
from flagsvc.http.streams import EVENT_STREAM, Channel, MayStay, Subscriber
from flagsvc.http.trust import TrustedProxies
from flagsvc.proxy.api.answers import NEVER, Answers, entity_headers
from flagsvc.proxy.api.route import DialectParts
from flagsvc.proxy.api.server_side import FilterReader
from flagsvc.proxy.api.streams import AT, TICKET, read_parameter, read_ticket

MAX_VERSION: Final = 64
"""The most characters of a version that a caller may send."""


def unknown_ticket() -> HttpError:
    """Return the 401 for a ticket that opens no stream."""
    return HttpError(401, "the ticket is unknown or has expired; ask for all flags again, which gives another ticket", [])


class Stream(Handler):
    """Opens a stream. A subclass finds out whose."""

    def __init__(self, parts: DialectParts) -> None:
        self.headers = parts.answers.headers(EVENT_STREAM, NEVER, [(b"x-accel-buffering", b"no")]).plain
        self.trust = TrustedProxies(parts.settings.trust_proxy)
        self.streams = parts.streams

    def open(self, call: Call, channel: Channel, at: str, may_stay: MayStay) -> Answer:
        """Return what opens the stream. Raises HttpError (404, 429) if there is no room."""
        network = self.trust.caller_network(call.request.peer, call.forwarded)
        self.check_room(network)
        if call.request.method == HEAD:
            return Response(200, self.headers, [], b"")
        known = (call.other(LAST_EVENT_ID) or at.encode("latin-1", "replace")).decode("latin-1")[:MAX_VERSION]
        return self.begin(Subscriber(channel, network, known, may_stay))

    def check_room(self, network: bytes) -> None:
        self.streams.streams.check_room(network)

    async def begin(self, subscriber: Subscriber) -> Response:
        """Return the stream. An answer in parts comes from a task."""
        return PartsResponse(200, self.headers, [], subscriber)


class KeyStream(Stream):
    """The stream for a caller that sends its key in the header. `counts` tells whether a key, as it was sent, still counts."""

    def __init__(self, parts: DialectParts, counts: Callable[[bytes], bool] | None = None) -> None:
        super().__init__(parts)
        check = KeyCheck(parts.keys.client, bearer=parts.answers.wire_format.reads_bearer)
        self.counts = counts or (lambda sent: check.accepted.contains(check.read_key(sent)))

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the stream. It lasts as long as the key counts. Raises HttpError (404, 429)."""
        return self.open(call, self.streams.hints, read_parameter(call, AT), partial(self.counts, call.key or b""))


class TicketStream(Stream):
    """The stream for a caller with a ticket in the URL.

    The caller is an `EventSource`, which gives up at any other status than 200. OpenFeature's provider would then ask for all flags
    and open the stream again, each second. So without room the stream tells the newest version and when to come back, and ends.
    """

    def __init__(self, parts: DialectParts) -> None:
        super().__init__(parts)
        self.reached = parts.reached
        self.open_ticket = parts.open_ticket

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the stream. It lasts as long as the ticket counts.

        Raises HttpError: 401 for a ticket that opens none, 404 if there are no streams.
        """
        ticket = read_ticket(read_parameter(call, TICKET))
        found = None if ticket is None else self.streams if self.open_ticket is None else self.open_ticket(ticket)
        if ticket is None or found is None or not found.tickets.admits(ticket):
            raise unknown_ticket()
        return self.open(call, found.hints, read_parameter(call, AT), partial(found.tickets.admits, ticket))

    def check_room(self, network: bytes) -> None:
        streams = self.streams.streams
        streams.check_on()
        if not streams.has_room(network):
            self.reached.add(STREAMS)


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


SCRIPT = b"text/javascript; charset=utf-8"
KEPT = b"public, max-age=3600"
"""Any cache keeps the module for an hour. A browser may get another version than the proxy has: both know only events and ids."""
SAFE = [(b"x-content-type-options", b"nosniff")]


def read_module() -> bytes:
    """Return the text of the module."""
    return files("flagsvc.proxy").joinpath("static", "live.js").read_bytes()


class LiveModule(Handler):
    """GET live.js, without a key."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.headers = answers.headers(SCRIPT, KEPT, SAFE)
        self.body = read_module()

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the module, or the 304 if the caller has it."""
        return self.answers.respond(self.headers, call, self.body)
