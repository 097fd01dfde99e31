"""Sends the same bytes to our HTTP server and to uvicorn's protocol around the ASGI application, and returns both replies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from flagsvc.http.messages import Response
from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.http.server.connection import EXTRA_BYTES
from flagsvc.proxy.api.service import Service
from support.frontkit import FakeTransport, Fields, State


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol over httptools; `bounded` makes a class of it that a server can use."""

    bound: int
    """Bytes that may come in a row without the request getting on."""
    refusal: Callable[[int], Response]
    """What to answer, by status: 400 for what is no HTTP, 431 for a head beyond the bound."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._got_on = False
        self._idle_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take bytes, and count those in a row that neither begin nor complete a head nor belong to a body."""
        self._got_on = False
        super().data_received(data)
        if self._got_on:
            self._idle_bytes = 0
            return
        self._idle_bytes += len(data)
        if self._idle_bytes > self.bound and not self.transport.is_closing():
            self._refuse(self.refusal(431))

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._got_on = True

    def on_headers_complete(self) -> None:
        """Complete the head."""
        self._got_on = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._got_on = True
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP with the application's message."""
        self._refuse(self.refusal(400))

    def _refuse(self, response: Response) -> None:
        """Write an answer to a request that is not complete, and close the connection."""
        status = f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n".encode()
        headers = [*self.server_state.default_headers, *response.headers(), (b"connection", b"close")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(status + lines + b"\r\n" + response.body)
        self.transport.close()


def bounded(limit: int, refuse: Callable[[int], Response]) -> type[BoundedProtocol]:
    """Return the protocol with a limit in bytes, and the answers, by status, to requests that the application never sees."""

    class Bounded(BoundedProtocol):
        """The protocol of one server."""

        bound = limit
        refusal = staticmethod(refuse)

    return Bounded


QUIET_TURNS = 4
"""Turns of the loop in which no task gets on, until nothing more is waited for: callbacks of tasks take some."""


@dataclass(frozen=True)
class Reply:
    """One answer. Its length tells where the next one begins."""

    status: int
    fields: Fields
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether it says that it is the last."""
        return ("connection", "close") in self.fields


@dataclass(frozen=True)
class Talk:
    """The result of one connection: the answers, and whether the other side closed it."""

    replies: tuple[Reply, ...]
    ended: bool


async def nothing() -> None:
    """Measuring for a start and a stop that need nothing."""


def over_front(service: Service) -> Any:
    """Return a connection of the front."""
    return ConnectionFactory(lambda: service, ConnectionLimits())(None, State(), {})


def over_uvicorn(service: Service) -> Any:
    """Return a connection of uvicorn's protocol with our head limit and our messages for bytes that are not a request."""
    return under(bounded(service.header_limit + service.query_limit + EXTRA_BYTES, service.early_refusal), service)


def over_uvicorn_alone(service: Service) -> Any:
    """Return a connection of uvicorn's protocol as it is."""
    return under(HttpToolsProtocol, service)


def under(protocol: Any, service: Service) -> Any:
    """Return a connection of a protocol of uvicorn's around the ASGI application."""
    app = AsgiApp(service, nothing, nothing)
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    return protocol(config, State(), {}, asyncio.get_running_loop())


async def talk(make: Callable[[Service], Any], service: Service, pieces: list[bytes]) -> Talk:
    """Send the pieces over a connection one by one, and return the result."""
    connection = make(service)
    transport = FakeTransport(quiet=True)
    transport.protocol = connection
    connection.connection_made(transport)
    for piece in pieces:
        if transport.over:
            break
        assert transport.reading, "it still does not read although everything has settled"
        connection.data_received(piece)
        await settle()
    ended = transport.over
    connection.connection_lost(None)
    await settle()
    return Talk(replies(bytes(transport.data)), ended)


async def settle() -> None:
    """Let every answer that can be made be made."""
    own = asyncio.current_task()
    quiet = 0
    while quiet < QUIET_TURNS:
        await asyncio.sleep(0)
        busy = any(not task.done() and not waits(task) for task in asyncio.all_tasks() if task is not own)
        quiet = 0 if busy else quiet + 1


def waits(task: asyncio.Task[Any]) -> bool:
    """Return whether a task waits for something that only more bytes bring about."""
    waiter = getattr(task, "_fut_waiter", None)
    return waiter is not None and not waiter.done()


def replies(data: bytes) -> tuple[Reply, ...]:
    """Return the answers in received bytes, without interim answers."""
    found = []
    while data:
        first, _, rest = data.partition(b"\r\n\r\n")
        line, *lines = first.split(b"\r\n")
        assert line.startswith(b"HTTP/1.1 "), line
        status = int(line.split(b" ")[1])
        fields = [
            (name.decode(), value.decode("latin-1")) for name, _, value in (each.partition(b": ") for each in lines)
        ]
        length = int(dict(fields).get("content-length", "0"))
        body = b"" if status in (100, 204, 304) or not rest or rest.startswith(b"HTTP/1.1 ") else rest[:length]
        data = rest[len(body) :]
        if status != 100:
            found.append(Reply(status, [pair for pair in fields if pair[0] not in ("date", "server")], body))
    return tuple(found)


UPGRADE = re.compile(rb"upgrade:|CONNECT ", re.IGNORECASE)
CODING = re.compile(rb"transfer-encoding:", re.IGNORECASE)
NO_PATH = re.compile(rb"://[^/ \r\n]{0,99}[ ?#]")
REFUSED = (400, 431)


@dataclass(frozen=True)
class Case:
    """The stream, and the rest of both talks from the first difference on."""

    stream: bytes
    ours: Talk
    theirs: Talk

    @property
    def first(self) -> tuple[Reply, Reply] | None:
        """The first replies of both, if there are any."""
        return (self.ours.replies[0], self.theirs.replies[0]) if self.ours.replies and self.theirs.replies else None

    def same_but(self, ours: tuple[str, str] | None, theirs: tuple[str, str] | None) -> bool:
        """Return whether the first replies differ only in one field each."""
        if self.first is None:
            return False
        mine, other = self.first
        return (
            (mine.status, mine.body) == (other.status, other.body)
            and [each for each in mine.fields if each != ours] == [each for each in other.fields if each != theirs]
            and (ours is None or ours in mine.fields)
            and (theirs is None or theirs in other.fields)
        )


CLOSE = ("connection", "close")
KEEP = ("connection", "keep-alive")


def gives_up(case: Case) -> bool:
    """Return true if bad bytes make uvicorn drop the unanswered requests before them."""
    left = case.theirs.replies
    both_ended = case.ours.ended and case.theirs.ended
    return both_ended and len(left) == 1 and left[0].status in REFUSED and bool(case.ours.replies)


def forgets_after_upgrade(case: Case) -> bool:
    """Return true if uvicorn drops the bytes in one read with an upgrade, body and later requests, and then continues."""
    return UPGRADE.search(case.stream) is not None


def keeps_old_connections(case: Case) -> bool:
    """Return true if a caller of HTTP/1.0 asks to keep the connection, and uvicorn closes it."""
    return b"HTTP/1.0" in case.stream and case.same_but(KEEP, CLOSE)


def closes_over_limit(case: Case) -> bool:
    """Return true if a body is over the limit: uvicorn reads all of it, of any size."""
    return case.same_but(CLOSE, None) and case.ours.replies[0].status == 413 and case.ours.ended


def closes_unexpected(case: Case) -> bool:
    """Return true if the answer comes before a body that waits for `100 Continue`: with uvicorn the next bytes are ambiguous."""
    return b"100-continue" in case.stream.lower() and case.same_but(CLOSE, None) and case.ours.ended


def finds_no_path(case: Case) -> bool:
    """Return true if an absolute target has no path: uvicorn fails on it."""
    return NO_PATH.search(case.stream) is not None and case.first is not None and case.first[1].status == 400


def refuses_framing(case: Case) -> bool:
    """Return true if other programs may see another end of a body: chunks in HTTP/1.0, codings beside `chunked`."""
    left = case.theirs.replies
    refused = bool(case.ours.replies) and case.ours.replies[0].status == 400 and case.ours.ended
    return refused and CODING.search(case.stream) is not None and (not left or left[0].status != 400)


def refuses_hosts(case: Case) -> bool:
    """Return true if a request of HTTP/1.1 has no Host, two of them, or a bad one: uvicorn does not check it."""
    refused = bool(case.ours.replies) and case.ours.replies[0].status == 400 and case.ours.ended
    heads = [part.lower() for part in case.stream.split(b"\r\n\r\n")]
    return refused and any(b"http/1.1" in part and part.count(b"\nhost: proxy") != 1 for part in heads)


def closes_tunnels(case: Case) -> bool:
    """Return true if bytes after CONNECT were meant for the other end of a tunnel: uvicorn keeps the connection."""
    return b"CONNECT " in case.stream and case.same_but(CLOSE, None) and case.ours.ended


def answers_once(case: Case) -> bool:
    """Return true if uvicorn refuses the body of a request that it has already answered."""
    left = case.theirs.replies
    return case.ours.ended and not case.ours.replies and len(left) == 1 and left[0].status in REFUSED


DIFFERENCES: tuple[Callable[[Case], bool], ...] = (
    keeps_old_connections,
    closes_over_limit,
    closes_unexpected,
    finds_no_path,
    answers_once,
    refuses_framing,
    refuses_hosts,
    closes_tunnels,
    gives_up,
    forgets_after_upgrade,
)


def difference(stream: bytes, ours: Talk, theirs: Talk) -> str | None:
    """Return the name of the row that explains a difference; empty without a difference, None without a row."""
    if ours == theirs:
        return ""
    pairs = zip(ours.replies, theirs.replies, strict=False)
    shortest = min(len(ours.replies), len(theirs.replies))
    at = next((index for index, (mine, other) in enumerate(pairs) if mine != other), shortest)
    case = Case(stream, Talk(ours.replies[at:], ours.ended), Talk(theirs.replies[at:], theirs.ended))
    return next((row.__name__ for row in DIFFERENCES if row(case)), None)
