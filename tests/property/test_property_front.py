"""For any bytes, cut at any place, our HTTP server answers like uvicorn's protocol around the same application, or better."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import uvicorn
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.proxy.api.service import Service
from fuzzing.rows import Row, run
from fuzzing.streams import CODED, UPGRADING, cut_up, cuts, damaged, streams, whole
from support.frontkit import KEYED, FakeTransport, Fields, State, head, serving

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
    """Return a connection of uvicorn's protocol around the ASGI application."""
    app = AsgiApp(service, nothing, nothing)
    config = uvicorn.Config(app, http=HttpToolsProtocol, ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    state: Any = State()
    return HttpToolsProtocol(config, state, {}, asyncio.get_running_loop())


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
        fields = [(name.decode(), value.decode("latin-1")) for name, _, value in (each.partition(b": ") for each in lines)]
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


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep what uvicorn has to say of bad bytes out of the output."""
    logger = logging.getLogger("uvicorn.error")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


def without_refusal_texts(spoken: Talk) -> Talk:
    """Return what came back without the words of refusals that uvicorn makes itself."""
    plain = [Reply(400, [], b"") if reply.status == 400 and reply.closes else reply for reply in spoken.replies]
    return replace(spoken, replies=tuple(plain))


async def as_with_uvicorn(service: Service, stream: bytes, where: list[int]) -> str:
    """Compare the front with uvicorn, which has no bound of a head; return the difference that explains the latter."""
    pieces = cut_up(stream, where)
    ours = await talk(over_front, service, pieces)
    if any(reply.status == 431 for reply in ours.replies):
        assert len(stream) > service.header_limit
        return ""
    theirs = without_refusal_texts(await talk(over_uvicorn, service, pieces))
    named = difference(stream, without_refusal_texts(ours), theirs)
    assert named is not None, (pieces, ours, theirs)
    return named


def as_uvicorn(service: Service, given: tuple[bytes, list[int]]) -> None:
    """The answers are the same, in the same order, and so is whether the connection ends; else a row says why."""
    asyncio.run(as_with_uvicorn(service, *given))


def as_one(service: Service, given: tuple[bytes, list[int]]) -> None:
    """The same bytes give the same answers, wherever they are cut."""
    stream, where = given
    cut, whole = (asyncio.run(talk(over_front, service, pieces)) for pieces in (cut_up(stream, where), [stream]))
    assert cut == whole, cut_up(stream, where)


STREAMS = Row("as uvicorn", st.tuples(streams, cuts), as_uvicorn, 250)
CUTS = Row("cut as whole", st.tuples(whole | damaged(), cuts), as_one, 150)


@pytest.mark.parametrize("turns", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("row", [STREAMS, CUTS], ids=str)
def test_any_stream(row: Row[Service], turns: bool) -> None:
    """Bytes of any kind, cut anywhere; answers made at once, or over some turns of the loop."""
    run(row, serving(turns=turns).service)


WITNESSES: dict[str, tuple[bytes, list[int]]] = {
    "gives_up": (head("GET /proxy/health HTTP/1.1") + b"\0\0", []),
    "forgets_after_upgrade": (UPGRADING + head("GET /proxy/health HTTP/1.1"), []),
    "keeps_old_connections": (head("GET /proxy/health HTTP/1.0", "Connection: keep-alive"), []),
    "closes_over_limit": (CODED + b"20000\r\n" + b" " * 0x20000 + b"\r\n0\r\n\r\n", []),
    "closes_unexpected": (head("POST /proxy HTTP/1.1", "Expect: 100-continue", "Content-Length: 2"), []),
    "finds_no_path": (head("GET http://proxy HTTP/1.1"), []),
    "refuses_framing": (head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n", []),
    "refuses_hosts": (b"GET /proxy/health HTTP/1.1\r\n\r\n", []),
    "closes_tunnels": (head("CONNECT /proxy HTTP/1.1", KEYED), []),
    "answers_once": (head("PUT /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked") + b"x", [-1]),
}
"""For each difference a stream that shows it."""


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.__name__)
def test_every_difference_is_one(row: object) -> None:
    """A row that describes no difference any more must be removed."""
    name = getattr(row, "__name__", "")
    assert asyncio.run(as_with_uvicorn(serving().service, *WITNESSES[name])) == name
