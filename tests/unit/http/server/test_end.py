"""How a connection ends that takes too long, or that there is no room for; and what of it is counted."""

from __future__ import annotations

import pytest

from flagsvc.http.reached_limits import BODY_TIME, CONNECTIONS, HEADER_TIME, HEADERS, WRITE_TIME
from flagsvc.http.server import ConnectionLimits
from flagsvc.http.server.connection import Connection
from support.aio import asynchronous
from support.frontkit import (
    KEYED,
    ConnectionWithTransport,
    FakeTransport,
    Serving,
    dial,
    get,
    head,
    open_connections,
    parse_answer,
    serving,
)

LIMITS = ConnectionLimits(keep_alive_s=50, head_s=5, body_s=10, write_s=3, linger_s=2, shutdown_s=1)
HEALTH = get("/proxy/health")
POST = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2")
CHUNKED = head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked")


def counted(given: Serving) -> dict[str, int]:
    """Return the limits that were reached."""
    return {limit: count for limit, count in given.service.reached.counts.items() if count}


@asynchronous
@pytest.mark.parametrize(
    ("begun", "seconds", "limit"),
    [
        (b"", 5, None),
        (b"\r\n", 5, HEADER_TIME),
        (HEALTH[:3], 5, HEADER_TIME),
        (HEALTH[:-1], 5, HEADER_TIME),
        (HEALTH + HEALTH[:-1], 5, HEADER_TIME),
        (POST, 10, BODY_TIME),
        (POST + b"{", 10, BODY_TIME),
        (CHUNKED, 10, BODY_TIME),
        (CHUNKED + b"1\r\n{\r\n", 10, BODY_TIME),
        (head("PUT /proxy HTTP/1.1", "Content-Length: 9"), 10, BODY_TIME),
    ],
    ids=[
        "nothing",
        "a line end",
        "half a method",
        "half a head",
        "half a second head",
        "no body",
        "half a body",
        "no chunk",
        "some chunks",
        "half a body that is not wanted",
    ],
)
async def test_heads_and_bodies_have_their_times(begun: bytes, seconds: int, limit: str | None) -> None:
    """A late head or body ends the connection. That is counted unless nothing had arrived, because browsers connect in advance."""
    given = serving()
    line = dial(given, LIMITS).send(begun)
    line.tick(seconds)
    assert not line.transport.closed
    line.tick()
    assert line.transport.closed
    assert counted(given) == ({} if limit is None else {limit: 1})  # type: ignore[unreachable]


@asynchronous
async def test_the_time_of_a_body_begins_with_the_end_of_its_head() -> None:
    """A head that came slowly takes nothing of it; bytes that trickle in do not turn it back."""
    line = dial(serving(), LIMITS).send(POST[:20])
    line.tick(5)
    line.send(POST[20:])
    line.tick(9)
    line.send(b"{")
    line.tick()
    assert not line.transport.closed
    line.tick()
    assert line.transport.closed


@asynchronous
async def test_a_caller_who_takes_nothing_is_counted() -> None:
    """When it is cut off."""
    given = serving()
    line = dial(given, LIMITS, takes=10).send(get())
    line.tick(5)
    assert line.transport.aborted and counted(given) == {WRITE_TIME: 1}


@asynchronous
async def test_no_room() -> None:
    """One more than there is room for is answered 503 and closed; when one goes, there is room for another."""
    given = serving()
    lines = open_connections(given, 3, ConnectionLimits(connections=2))
    lines[0].connection.shared.writer.flush()
    status, fields, body, rest = parse_answer(bytes(lines[2].transport.data))
    assert (status, body, rest) == (503, b"too many connections", b"")
    assert {("connection", "close"), ("cache-control", "no-store"), ("retry-after", "1")} <= set(fields)
    assert lines[2].transport.ended and not lines[2].transport.closed
    for line in lines[:2]:
        assert line.send(HEALTH).answers() == [200]
    assert counted(given) == {CONNECTIONS: 1}
    lines[2].send(HEALTH)
    lines[2].tick(6)
    assert lines[2].transport.closed
    lines[2].lose()  # type: ignore[unreachable]
    lines[0].lose()
    assert not lines[1].connection.shared.rejected
    again = Connection(lines[1].connection.shared, given.service, lines[1].connection.parser.names)
    transport = FakeTransport()
    again.connection_made(transport)
    assert ConnectionWithTransport(again, transport).send(HEALTH).answers() == [200]


@asynchronous
async def test_no_room_to_say_so() -> None:
    """Beyond some that wait for their end, connections are closed without a word; all of them are counted, none is forgotten."""
    given = serving()
    lines = open_connections(given, 10, ConnectionLimits(connections=1, rejected=3))
    lines[0].connection.shared.writer.flush()
    assert [line.transport.ended for line in lines] == [False] + [True] * 3 + [False] * 6
    assert [line.transport.aborted for line in lines] == [False] * 4 + [True] * 6
    assert all(line.transport.data == b"" for line in lines[4:])
    assert counted(given) == {CONNECTIONS: 9}
    for line in lines[1:]:
        line.lose()
    assert not lines[0].connection.shared.rejected and len(lines[0].connection.shared.connections) == 1


@asynchronous
async def test_a_head_of_many_small_fields_is_not_put_together() -> None:
    """One that is far too large is refused as it is read, and nothing of it is kept, in the parser neither."""
    given = serving(header_limit=2000, query_limit=100)
    many = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2", *["X-Forwarded-For: 10.0.0.1"] * 5000)
    line = dial(given).send(many)
    assert line.answers("POST") == [431]
    assert line.connection.parser.call.forwarded is None and line.connection.parser.parser is None
    assert counted(given) == {HEADERS: 1}
