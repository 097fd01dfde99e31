"""Odd heads and bodies, sent to both programs, each as a process and mounted in a plain ASGI server."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from support.flagservers import BACKEND_SECRET
from support.frontframing import BAD_HOSTS, LAST, REFUSED, TAKEN, TOO_LARGE
from support.frontkit import get
from support.smuggling import PROXIES, SERVERS

SECONDS = 10.0
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
HIDDEN = get("/nowhere")
"""A path that is a 404 if the bytes are read as a request."""


@dataclass(frozen=True)
class Program:
    """A listening program: its port, its path for `/proxy`, its health path, and a good key.

    `own` tells that our HTTP server serves it.
    """

    port: int
    path: bytes
    health: bytes
    key: bytes
    own: bool

    def spoken(self, stream: bytes) -> bytes:
        """Return a stream for the proxy as one for this program; a body is JSON."""
        fitting = stream.replace(b"/proxy/health", b"@").replace(b"/proxy", self.path).replace(b"@", self.health)
        return fitting.replace(b"client-key", self.key + b"\r\ncontent-type: application/json", 1)


OF_PROXY = (b"/proxy", b"/proxy/health", b"client-key")
OF_SERVER = (b"/api/client/metrics", b"/health", BACKEND_SECRET.encode())
PROGRAMS = [*PROXIES, *SERVERS]


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One of the programs, at work."""
    name: str = request.param
    run, words, content = (
        (PROXIES[name], OF_PROXY, {"version": 2, "features": []}) if name in PROXIES else (SERVERS[name], OF_SERVER, {})
    )
    with run(tmp_path_factory.mktemp("framing"), content) as port:
        yield Program(port, *words, own="mounted" not in name)


def answered(port: int, data: bytes, size: int) -> bytes:
    """Return the answer to these bytes, sent in pieces of a size, until the other side closes."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as caller, contextlib.suppress(OSError):
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            for at in range(0, len(data), size):
                caller.sendall(data[at : at + size])
            caller.shutdown(socket.SHUT_WR)
        while part := caller.recv(65_536):
            found += part
    return found


def statuses(data: bytes) -> list[int]:
    """Return the status of every answer."""
    return [int(each) for each in STATUS.findall(data)]


in_pieces = pytest.mark.parametrize("size", [100_000, 1], ids=["in one piece", "byte by byte"])


@in_pieces
def test_what_is_odd_is_the_last_of_its_connection(program: Program, size: int) -> None:
    """At most two answers come (one may precede the bad end), and none to the hidden request."""
    for name, stream in (REFUSED | LAST).items():
        if name in BAD_HOSTS and not program.own:
            continue  # a server that is not ours takes them, and they end where they should
        found = statuses(answered(program.port, program.spoken(stream) + HIDDEN, size))
        assert 404 not in found and len(found) <= 2, (name, found)
        if program.own:
            assert len(found) == 1 and (found[0] == 400 or name in LAST), (name, found)


def test_too_large_a_head_is_the_last_of_its_connection(program: Program) -> None:
    """At most one answer comes, and none to the hidden request."""
    for name, stream in TOO_LARGE.items():
        for size in (1_000_000, 7_000):
            found = statuses(answered(program.port, program.spoken(stream) + HIDDEN, size))
            assert 404 not in found and len(found) <= 1, (name, found)
            assert not program.own or found == [431] or found == [400], (name, found)


@in_pieces
def test_what_is_plain_is_taken(program: Program, size: int) -> None:
    """After a request with a clear end, only the next request is answered.

    Another server may close the connection before, and always does so after an upgrade.
    """
    for name, stream in TAKEN.items():
        data = program.spoken(stream) + get(program.health.decode(), "Connection: close")
        found = statuses(answered(program.port, data, size))
        assert found[0] != 404 and found[1:] in ([200],) if program.own else found[1:] in ([200], []), (name, found)
        if not program.own and "Upgrade: " in stream.decode("latin-1"):
            assert len(found) <= 1, (name, found)
