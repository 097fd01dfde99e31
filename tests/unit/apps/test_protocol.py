"""A request that does not get on: its bytes are bounded, and so is its time."""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn

from flagsvc.api.http import Response
from flagsvc.apps import protocol
from flagsvc.apps.protocol import bounded

BOUND = 4096
TAKEN: dict[int, float] = {}
"""Bytes that the server took of each connection, by the caller's port; infinite when it is gone."""
TOOK = threading.Condition()
"""Is told whenever that changes."""


def refusal(status: int) -> Response:
    """The answer to a head that goes on and on, and to rubbish."""
    return Response(status, [(b"access-control-allow-origin", b"*")], [(b"content-length", b"5")], b"large")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read the body and answer with the number of header bytes and of body bytes."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    head = sum(len(name) + len(value) for name, value in scope["headers"])
    body = f"{head} {size}".encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
    )
    await send({"type": "http.response.body", "body": body})


class Watched(bounded(BOUND, refusal)):  # type: ignore[misc]  # the class is made when it is asked for
    """The bounded protocol, and what it took."""

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        super().connection_made(transport)
        self.note(0)

    def data_received(self, data: bytes) -> None:
        """Take bytes; no more after what ends the connection."""
        super().data_received(data)
        self.note(math.inf if self.transport.is_closing() else TAKEN[self.client[1]] + len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        self.note(math.inf)

    def note(self, size: float) -> None:
        """Tell what was taken so far."""
        with TOOK:
            TAKEN[self.client[1]] = size
            TOOK.notify_all()


@contextmanager
def served() -> Iterator[int]:
    """Run the application over the bounded protocol in a thread; give its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, http=Watched, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server that runs for all tests of this file."""
    with served() as number:
        yield number


@pytest.fixture
def caller(port: int) -> Iterator[socket.socket]:
    """A connection to it."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def trickle(connection: socket.socket, data: bytes, step: int = 1024) -> None:
    """Send in pieces, each when the other side has taken the one before, until it takes no more."""
    port = connection.getsockname()[1]
    for at in range(0, len(data), step):
        piece = data[at : at + step]
        wanted = TAKEN.get(port, 0) + len(piece)
        if wanted == math.inf:
            return
        connection.sendall(piece)
        with TOOK:
            assert TOOK.wait_for(partial(reaches, port, wanted), 20)


def reaches(port: int, wanted: float) -> bool:
    """Return whether so much was taken of a connection."""
    return TAKEN.get(port, 0) >= wanted


@pytest.mark.parametrize(
    "head",
    [b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000, b"GET /" + b"x" * 20_000, b"GET / HTTP/1.1\r\n" + b"Ab: c\r\n" * 3000],
    ids=["one endless header", "an endless path", "headers without end"],
)
def test_a_head_without_end(caller: socket.socket, head: bytes) -> None:
    """Beyond the bound the answer is the refusal, with its headers, and the connection is closed."""
    trickle(caller, head)
    answer = read_all(caller)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"access-control-allow-origin: *\r\n" in answer and b"connection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\nlarge")


def test_trailers_without_end(caller: socket.socket) -> None:
    """What follows a chunked body counts too."""
    trickle(caller, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    trickle(caller, b"T: " + b"x" * 20_000)
    assert b" 431 " in read_all(caller)


def test_a_whole_head_is_for_the_application(caller: socket.socket) -> None:
    """A head that arrives whole is not judged here, however large it is."""
    caller.sendall(b"GET / HTTP/1.1\r\nA: " + b"x" * 3 * BOUND + b"\r\nConnection: close\r\n\r\n")
    assert read_all(caller).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_slow_small_head(caller: socket.socket) -> None:
    """A head in many pieces is served as long as it stays within the bound."""
    trickle(caller, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", step=5)
    assert read_all(caller).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_large_body(caller: socket.socket) -> None:
    """Bodies are not bounded here: bytes of a body get the request on."""
    trickle(caller, b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n")
    trickle(caller, b"x" * 300_000, step=10_000)
    assert read_all(caller).endswith(b" 300000")


def test_many_requests_behind_one_another(caller: socket.socket) -> None:
    """Pipelined requests that fill more than the bound at once are all answered."""
    one = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n" + b"x" * 500
    caller.sendall(one * 40 + b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read_all(caller).count(b"HTTP/1.1 200 OK") == 41


def test_rubbish(caller: socket.socket) -> None:
    """What is no HTTP is a 400, and the connection is closed."""
    caller.sendall(b"\x16\x03\x01rubbish\r\n\r\n")
    answer = read_all(caller)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n") and b"access-control-allow-origin: *\r\n" in answer


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
    ],
    ids=["no request", "half a head", "no body", "half a body", "no last chunk"],
)
def test_patience_ends(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    """A connection that sends no request, or half a head or body and then nothing, is closed after a while."""
    monkeypatch.setattr(protocol, "PATIENCE_S", 0.1)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        caller.sendall(begun)
        assert read_all(caller) == b""


def test_patience_is_for_requests_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause to the next request may take longer: a request that is there, body and all, stops the clock."""
    monkeypatch.setattr(protocol, "PATIENCE_S", 0.6)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        for head, body in (
            (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2", b"xy"),
            (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c", b""),
            (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", b"1\r\nx\r\n0\r\n\r\n"),
        ):
            caller.sendall(head + b"\r\n\r\n" + body)
            assert caller.recv(65536).startswith(b"HTTP/1.1 200 OK")
            with socket.create_connection(("127.0.0.1", port), timeout=10) as silent:
                assert read_all(silent) == b""  # its clock began after the answer, and has run out
        caller.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert caller.recv(65536).startswith(b"HTTP/1.1 200 OK")
