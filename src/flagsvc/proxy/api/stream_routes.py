"""The routes of event streams for browsers: with the key in the header, or with a ticket in the URL (dialects: Event streams)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from flagsvc.http.call import LAST_EVENT_ID, Answer, Call, Handler
from flagsvc.http.keys import KeyCheck
from flagsvc.http.messages import HEAD, HttpError, Response
from flagsvc.http.parts import PartsResponse
from flagsvc.http.reached_limits import STREAMS
from flagsvc.http.streams import EVENT_STREAM, Channel, MayStay, Subscriber
from flagsvc.http.trust import TrustedProxies
from flagsvc.proxy.api.answers import NEVER
from flagsvc.proxy.api.route import DialectParts
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
