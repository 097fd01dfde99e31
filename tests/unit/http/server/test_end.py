"""How a connection ends that takes too long, or that there is no room for; and what of it is counted.

The front under uvicorn, on sockets: TLS, slow readers, half-closed connections, and how a server ends.
What uvicorn gets as its protocol.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trustme
import uvicorn

from flagsvc.http.reached_limits import BODY_TIME, CONNECTIONS, HEADER_TIME, HEADERS
from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.http.server.connection import Connection
from support.frontkit import (
    KEYED,
    ConnectionWithTransport,
    FakeTransport,
    Serving,
    State,
    dial,
    get,
    head,
    open_connections,
    parse_answer,
    parse_answers,
    serving,
)
from unit.http.server.test_connection import many_flags

LIMITS = ConnectionLimits(keep_alive_s=50, head_s=5, body_s=10, write_s=3, linger_s=2, shutdown_s=1)
HEALTH = get("/proxy/health")
POST = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2")
CHUNKED = head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked")


def counted(given: Serving) -> dict[str, int]:
    """Return the limits that were reached."""
    return {limit: count for limit, count in given.service.reached.counts.items() if count}


BEGUN: dict[str, tuple[bytes, int, str | None]] = {
    "nothing": (b"", 5, None),
    "a line end": (b"\r\n", 5, HEADER_TIME),
    "half a method": (HEALTH[:3], 5, HEADER_TIME),
    "half a head": (HEALTH[:-1], 5, HEADER_TIME),
    "half a second head": (HEALTH + HEALTH[:-1], 5, HEADER_TIME),
    "no body": (POST, 10, BODY_TIME),
    "half a body": (POST + b"{", 10, BODY_TIME),
    "no chunk": (CHUNKED, 10, BODY_TIME),
    "some chunks": (CHUNKED + b"1\r\n{\r\n", 10, BODY_TIME),
    "half a body that is not wanted": (head("PUT /proxy HTTP/1.1", "Content-Length: 9"), 10, BODY_TIME),
}


@pytest.mark.parametrize(("begun", "seconds", "limit"), BEGUN.values(), ids=BEGUN)
async def test_heads_and_bodies_have_their_times(begun: bytes, seconds: int, limit: str | None) -> None:
    """A late head or body ends the connection. That is counted unless nothing had arrived, because browsers connect in advance."""
    given = serving()
    line = dial(given, LIMITS).send(begun)
    line.tick(seconds)
    assert not line.transport.closed
    before = bytes(line.transport.data)
    line.tick()
    assert line.transport.data == before, "it ends without a word"
    assert line.transport.closed
    assert counted(given) == ({} if limit is None else {limit: 1})  # type: ignore[unreachable]


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


async def test_a_head_of_many_small_fields_is_not_put_together() -> None:
    """A far too large head is refused as it is read. Nothing of it is kept, not even in the parser."""
    given = serving(header_limit=2000, query_limit=100)
    many = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2", *["X-Forwarded-For: 10.0.0.1"] * 5000)
    line = dial(given).send(many)
    assert line.answers("POST") == [431]
    assert line.connection.parser.call.forwarded is None and line.connection.parser.parser is None
    assert counted(given) == {HEADERS: 1}


BIG = many_flags(500, 2_005)


@contextlib.contextmanager
def served(given: Serving, limits: ConnectionLimits | None = None, **config: Any) -> Iterator[tuple[int, uvicorn.Server]]:
    """Run the HTTP server under uvicorn in a thread. Yields its port and the server, which exits at the end."""
    protocol: Any = ConnectionFactory(lambda: given.service, limits or ConnectionLimits())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(no_app, http=protocol, ws="none", lifespan="off", log_config=None, server_header=False, **config)
        )
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield listener.getsockname()[1], server
        finally:
            server.should_exit = True
            thread.join(20)
        assert not thread.is_alive()


async def no_app(scope: Any, receive: Any, send: Any) -> None:
    """An application that is never called."""
    raise AssertionError("called")


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> str:
    """Each event loop there is."""
    return str(request.param)


def dialled(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def test_a_refusal_reaches_who_is_still_sending(loop: str) -> None:
    """The answer to a body over the limit is read, although bytes of the body are on their way."""
    with served(serving(), loop=loop) as (port, _), dialled(port) as caller:
        caller.sendall(head("POST /proxy HTTP/1.1", KEYED, "Transfer-Encoding: chunked"))
        with contextlib.suppress(OSError):
            for _ in range(40):
                caller.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
        caller.shutdown(socket.SHUT_WR)
        assert parse_answer(read_all(caller))[0] == 413


def test_tls(loop: str, tmp_path: Any) -> None:
    """uvicorn's TLS settings hold: requests in one go, in many records, pipelined, with an end."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    key.write_bytes(certificate.private_key_pem.bytes())
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with (
        served(serving(BIG), loop=loop, ssl_certfile=str(chain), ssl_keyfile=str(key)) as (port, _),
        dialled(port) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as caller,
    ):
        for byte in HEALTH:
            caller.send(bytes([byte]))
        caller.sendall(get() * 20 + get("/proxy/health", "Connection: close"))
        answers = parse_answers(read_all(caller), ["GET"] * 22)
    assert [status for status, _, _ in answers] == [200] * 22 and len(answers[1][2]) > 1_000_000


async def test_connections_of_one_server_share_a_state() -> None:
    """Connections of one server share their state; those of another server do not. Each connection asks for the contract."""
    given = [serving().service, serving().service]
    make = ConnectionFactory(lambda: given[0], ConnectionLimits())
    state = State()
    first, second = make(None, state, {}), make(config=None, server_state=state, app_state={}, _loop=None)
    given.reverse()
    third = make(None, State(), {})
    assert first.shared is second.shared and first.parser.names is second.parser.names
    assert third.shared is not first.shared and third.parser.names is not first.parser.names
    assert first.contract is second.contract is given[1] and third.contract is given[0]


async def test_the_number_of_answers() -> None:
    """It counts the answers on all connections of the server, from 0 on."""
    given = serving().service
    make = ConnectionFactory(lambda: given, ConnectionLimits())
    assert make.answered == 0
    connection = make(None, State(), {})
    connection.shared.answered += 2
    assert make.answered == 2


async def test_draining() -> None:
    """After `drain`, every answer is the last of its connection, on existing and new connections of any server."""
    given = serving().service
    make = ConnectionFactory(lambda: given, ConnectionLimits())
    state = State()
    there = make(None, state, {})
    make.drain()
    come, other = make(None, state, {}), make(None, State(), {})
    assert there.shared.draining and come.shared.draining and other.shared.draining
    assert not (there.shared.times.stopping or other.shared.times.stopping)
    fresh = ConnectionFactory(lambda: given, ConnectionLimits())
    fresh.drain()
    assert fresh(None, State(), {}).shared.draining
