"""Event streams for browsers: hints that the configuration has changed, and tickets that open a stream (dialects: Event streams).

A page that hears a hint asks again. A browser's `EventSource` sends no header, so its URL has a ticket instead of the key. A ticket
opens nothing but the stream of its environment, until it expires. Every process with the same keys takes it.
"""

from __future__ import annotations

import asyncio
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from secrets import token_bytes
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec

from flagsvc.core.clock import Clock
from flagsvc.http.call import Call
from flagsvc.http.streams import Channel, Streams
from flagsvc.proxy.api.deltas import DeltaScopes
from flagsvc.proxy.configuration.holder import ConfigurationDocument, ConfigurationHolder

PERIOD_S: Final = 12 * 3600
"""Seconds in which all callers of an environment get the same ticket."""
PERIODS: Final = 2
"""A ticket counts for the rest of its period, and for so many more."""
PURPOSE: Final = "tickets of event streams"
MAC_OCTETS: Final = 16
MAX_TICKET: Final = 8192
SEEN: Final = 64
"""The last versions that are remembered."""
TICKET, AT = "ticket", "at"
"""The parameters of a stream's URL: the ticket, and the version that the caller has."""
CATCH_UP_S: Final = 1.0
"""Seconds that a request waits for a version that its caller has heard of, and this process has not."""


class Hints(Channel):
    """The stream of one environment: each new version of its configuration is a hint. A part of an environment hears of all.

    `committed` is the moment of the event loop at which the next version was committed; 0 where that is not known.
    """

    def __init__(self, streams: Streams, holder: ConfigurationHolder, clock: Clock) -> None:
        super().__init__(streams)
        self._holder = holder.whole
        self._clock = clock
        self._document: ConfigurationDocument | None = None
        self._modified = 0
        self._seen: deque[str] = deque(maxlen=SEEN)
        self._news = asyncio.Event()
        self._asked = float("-inf")
        self.committed = 0.0
        self._holder.parts.add(self)

    def read(self) -> str:
        """Return the version of the served configuration."""
        document = self._holder.document
        if document is not self._document:
            self._document = document
            self._modified = int(self._clock.now())
            if document is not None:
                self._seen.append(document.version)
        return self._seen[-1] if self._seen else ""

    def follow(self) -> None:
        """Tell the callers of the configuration that is served now."""
        self.read()
        self._news.set()
        if self.subscribers:
            asyncio.get_running_loop().call_soon(self.join)

    def join(self) -> None:
        """Tell the callers of the version that is served, if it is new."""
        self.announce(self.read(), self.committed)
        self.committed = 0.0

    def tell(self, known: str) -> bytes:
        """Return the hint. OpenFeature's protocol defines its data (ADR-0008)."""
        data = {"type": "refetchEvaluation", "etag": self.version, "lastModified": self._modified}
        return b"event: message\nid: %b\ndata: %b\n\n" % (self.version.encode(), msgspec.json.encode(data))

    async def catch_up(self, version: str) -> None:
        """Wait a moment for a version of which a caller has heard, if it is new here: another process may be ahead."""
        if version == self.read() or version in self._seen:
            return
        now = self._clock.monotonic()
        if now - self._asked >= CATCH_UP_S:
            self._asked = now
            self._holder.ask_upstream()
        until = asyncio.get_running_loop().time() + CATCH_UP_S
        while version != self.read() and (left := until - asyncio.get_running_loop().time()) > 0:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                return


class Ticket(NamedTuple):
    """A ticket that was read: the environment and its projects (None for all), the period of its issue, and its signature."""

    environment: str
    projects: list[str] | None
    period: int
    signed: bytes
    mac: bytes


class Tickets:
    """Signs the tickets of an environment, or of some projects of it, with the secret that `get_secret` returns."""

    def __init__(self, get_secret: Callable[[], bytes], environment: str, projects: Iterable[str] | None, clock: Clock) -> None:
        self._get_secret = get_secret
        self._opened = environment, None if projects is None else sorted(projects)
        self._clock = clock
        self._made_of: tuple[bytes, int] = b"", 0
        self._ticket = ""

    def issue(self) -> str:
        """Return the ticket of this period."""
        made_of = self._get_secret(), self._period()
        if made_of != self._made_of:
            signed = encode64(msgspec.json.encode((*self._opened, made_of[1])))
            self._made_of, self._ticket = made_of, f"{signed.decode()}.{encode64(self._sign(signed)).decode()}"
        return self._ticket

    def admits(self, ticket: Ticket) -> bool:
        """Return whether a ticket of the environment is signed with the secret, and has not expired."""
        age = self._period() - ticket.period
        return hmac.compare_digest(self._sign(ticket.signed), ticket.mac) and 0 <= age <= PERIODS

    def _period(self) -> int:
        return int(self._clock.now() // PERIOD_S)

    def _sign(self, signed: bytes) -> bytes:
        return blake2b(signed, key=self._get_secret(), digest_size=MAC_OCTETS).digest()


def make_secret(keys: Iterable[str]) -> bytes:
    """Return the secret of tickets that follows from these keys; without any key, a random secret."""
    texts = sorted(keys)
    return blake2b("\0".join([PURPOSE, *texts]).encode("utf-8", "replace")).digest() if texts else token_bytes(64)


def encode64(octets: bytes) -> bytes:
    return urlsafe_b64encode(octets).rstrip(b"=")


def decode64(text: bytes) -> bytes:
    """Return the decoded octets. Raises ValueError."""
    return urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def read_ticket(text: str) -> Ticket | None:
    """Return a ticket, not yet verified; None if it is none."""
    signed, _, mac = text[:MAX_TICKET].encode("ascii", "replace").partition(b".")
    try:
        fields = msgspec.json.decode(decode64(signed), type=tuple[str, list[str] | None, int])
        return Ticket(*fields, signed, decode64(mac))
    except ValueError:  # msgspec's errors are ValueErrors, too
        return None


class StreamParts(NamedTuple):
    """The event streams of a service: all streams of its process, its channel of hints with what signs the tickets, and the
    channels of server-side SDKs."""

    streams: Streams
    hints: Hints
    tickets: Tickets
    deltas: DeltaScopes

    def end_all(self) -> None:
        """End every stream of the service."""
        self.hints.end_all()
        self.deltas.end_all()


OpenTicket = Callable[[Ticket], StreamParts | None]
"""Returns the stream that a ticket opens; None if it opens none."""


def read_parameter(call: Call, name: str) -> str:
    """Return the first value of a parameter of the query; empty without one."""
    pairs = parse_qsl(call.request.query.decode("latin-1"))
    return next((value for found, value in pairs if found == name), "")


def stream_url(path: str, parts: StreamParts) -> str:
    """Return the URL of the stream for a caller that has the answer from the present configuration."""
    return f"{quote(path)}?{TICKET}={parts.tickets.issue()}&{AT}={parts.hints.read()}"
