"""Event streams for browsers: hints that the configuration has changed, and tickets that open a stream (dialects: Event streams).

A page that hears a hint asks again. A browser's `EventSource` sends no header, so its URL has a ticket instead of the key. A ticket
opens nothing but the stream of its environment, until it expires. Every process with the same keys takes it.
"""

from __future__ import annotations

import asyncio
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable, Mapping
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
ID_OCTETS: Final = 4
MAX_TICKET: Final = 8192
SEEN: Final = 64
"""The last versions that are remembered."""
TICKET, AT = "ticket", "at"
"""The parameters of a stream's URL: the ticket, and the version that the caller has."""
CATCH_UP_S: Final = 1.0
"""Seconds that a request waits for a version that its caller has heard of, and this process has not."""


class Hints(Channel):
    """The stream of one environment: each new version of its configuration is a hint. A part of an environment hears of all.

    `committed` is the moment of the event loop at which the next version was committed; 0 where that is not known. `waiting` counts
    the requests that wait for a version.
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
        self.waiting = 0
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
        self.waiting += 1
        try:
            async with asyncio.timeout(CATCH_UP_S):
                while version != self.read():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        finally:
            self.waiting -= 1


class Ticket(NamedTuple):
    """A ticket that was read: the environment, the period of its issue, the id of the secret, and its signature."""

    environment: str
    period: int
    secret: str
    signed: bytes
    mac: bytes


class Tickets:
    """Signs the tickets of an environment. `get_secrets` returns the present secrets by their ids.

    The first one signs, and a ticket that any of them has signed counts. So tickets go on while keys are added and replaced.
    """

    def __init__(self, get_secrets: Callable[[], Mapping[str, bytes]], environment: str, clock: Clock) -> None:
        self._get_secrets = get_secrets
        self._environment = environment
        self._clock = clock
        self._made_of: tuple[Mapping[str, bytes], int] = {}, 0
        self._ticket = ""

    def issue(self) -> str:
        """Return the ticket of this period; empty if there is no secret any more."""
        secrets, period = self._get_secrets(), self._period()
        if not secrets:
            return ""
        if secrets is not self._made_of[0] or period != self._made_of[1]:
            identity = next(iter(secrets))
            signed = encode64(msgspec.json.encode((self._environment, period, identity)))
            self._made_of = secrets, period
            self._ticket = f"{signed.decode()}.{encode64(sign(signed, secrets[identity])).decode()}"
        return self._ticket

    def admits(self, ticket: Ticket) -> bool:
        """Return whether a ticket of the environment is signed with a present secret, and has not expired."""
        secret = self._get_secrets().get(ticket.secret)
        if secret is None or ticket.environment != self._environment:
            return False
        return hmac.compare_digest(sign(ticket.signed, secret), ticket.mac) and 0 <= self._period() - ticket.period <= PERIODS

    def _period(self) -> int:
        return int(self._clock.now() // PERIOD_S)


def sign(signed: bytes, secret: bytes) -> bytes:
    return blake2b(signed, key=secret, digest_size=MAC_OCTETS).digest()


def make_secrets(keys: Iterable[str]) -> dict[str, bytes]:
    """Return the secret of tickets that follows from each key, by its id; without any key, a random secret."""
    found = [blake2b(f"{PURPOSE}\0{key}".encode("utf-8", "replace")).digest() for key in keys] or [token_bytes(64)]
    return {blake2b(each, digest_size=ID_OCTETS).hexdigest(): each for each in found}


def encode64(octets: bytes) -> bytes:
    return urlsafe_b64encode(octets).rstrip(b"=")


def decode64(text: bytes) -> bytes:
    """Return the decoded octets. Raises ValueError."""
    return urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def read_ticket(text: str) -> Ticket | None:
    """Return a ticket, not yet verified; None if it is none."""
    signed, _, mac = text[:MAX_TICKET].encode("ascii", "replace").partition(b".")
    try:
        fields = msgspec.json.decode(decode64(signed), type=tuple[str, int, str])
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
