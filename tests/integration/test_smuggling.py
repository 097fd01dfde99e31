"""Odd heads and bodies, sent to both programs, each as a process and mounted in a plain ASGI server.

Behind a load balancer that shares one connection among callers, one caller's bytes never begin another's request, and a caller
without a token cannot use an administrator's.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.balancers import haproxy_as
from support.flagservers import BACKEND_SECRET, USER_SECRET, OurFlagServer, our_flag_server
from support.frontframing import BAD_HOSTS, HIDDEN, LAST, REFUSED, TAKEN, TOO_LARGE
from support.frontkit import get
from support.processes import Proxy, ask, our_proxy
from support.smuggling import BALANCERS, HAPROXY, PROXIES, SERVERS
from support.worker_pools import samples

SECONDS = 10.0
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
NOWHERE = get("/nowhere")
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
        found = statuses(answered(program.port, program.spoken(stream) + NOWHERE, size))
        assert 404 not in found and len(found) <= 2, (name, found)
        if program.own:
            assert len(found) == 1 and (found[0] == 400 or name in LAST), (name, found)


def test_too_large_a_head_is_the_last_of_its_connection(program: Program) -> None:
    """At most one answer comes, and none to the hidden request."""
    for name, stream in TOO_LARGE.items():
        for size in (1_000_000, 7_000):
            found = statuses(answered(program.port, program.spoken(stream) + NOWHERE, size))
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


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Proxy]]:
    """Run a proxy for the key of the odd heads, and HAProxy before it with one connection to it; give HAProxy's port."""
    document = tmp_path_factory.mktemp("haproxy") / "flags.json"
    document.write_text(json.dumps({"version": 2, "features": []}))
    with (
        our_proxy(document.as_uri(), UNLEASH_PROXY_CLIENT_KEYS="client-key") as proxy,
        haproxy_as(HAPROXY, f"    server one 127.0.0.1:{proxy.port} maxconn 1") as port,
    ):
        yield port, proxy


def sent(port: int, data: bytes) -> bytes:
    """Return the answer to these bytes, until the other side closes or is silent."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as caller, contextlib.suppress(OSError):
        caller.sendall(data)
        caller.shutdown(socket.SHUT_WR)
        while part := caller.recv(65_536):
            found += part
    return found


def hidden_requests(proxy: Proxy) -> float:
    """Return how many hidden requests have reached the proxy."""
    mark = 'route="unmatched",status="404"}'
    return sum(value for name, value in samples(proxy).items() if name.endswith(mark))


def labels_are_sorted(proxy: Proxy) -> bool:
    """Return whether the sample that is looked for has this very form."""
    ask(f"http://127.0.0.1:{proxy.port}/nowhere")
    return hidden_requests(proxy) > 0


@pytest.mark.parametrize("name", [*REFUSED, *TAKEN, *LAST])
def test_no_caller_gets_the_answer_of_another(both: tuple[int, Proxy], name: str) -> None:
    """Only its sender gets the answer to a hidden request, and the next caller gets its own answer."""
    port, proxy = both
    assert labels_are_sorted(proxy)
    before = hidden_requests(proxy)
    own = sent(port, (REFUSED | TAKEN | LAST)[name] + HIDDEN)
    for _ in range(3):
        answer = ask(f"http://127.0.0.1:{port}/proxy/health")
        assert (answer.status, answer.body) == (200, b"ok")
    assert hidden_requests(proxy) - before <= own.count(b"HTTP/1.1 404")


TURNS = 5
KIND = "/api/admin/tag-types/team"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurFlagServer]:
    """A flag server with a tag type that only an administrator may delete."""
    folder: Path = tmp_path_factory.mktemp("smuggling")
    with our_flag_server(folder=folder) as one:
        one.admin("/tag-types", {"name": "team", "description": "Who owns it"})
        yield one


@pytest.fixture(scope="module", params=BALANCERS)
def front(request: pytest.FixtureRequest, server: OurFlagServer) -> Iterator[int]:
    """The port of a balancer before it, with kept connections to it."""
    with BALANCERS[request.param](int(server.root.rpartition(":")[2]), "/health") as port:
        yield port


def attack(fields: str, body: bytes) -> bytes:
    """Return a POST without a token."""
    head = f"POST /api/admin/projects HTTP/1.1\r\nHost: flags\r\n{fields}\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


HIDDEN_DELETE = f"\r\n\r\nDELETE {KIND} HTTP/1.1\r\nHost: flags\r\nX-Rest: ".encode()
"""The administrator's next request line becomes the value of a header, and its token the token of this."""
ATTACKS = {
    "small": attack("Connection: upgrade\r\nUpgrade: websocket", HIDDEN_DELETE),
    "large": attack("Connection: upgrade\r\nUpgrade: websocket", b"\r\n" * 40_000 + HIDDEN_DELETE),
    "h2c": attack("Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\nUpgrade: h2c", HIDDEN_DELETE),
    "in capitals": attack("CONNECTION: UPGRADE\r\nUPGRADE: WebSocket", HIDDEN_DELETE),
    "without an upgrade": attack("X: y", HIDDEN_DELETE),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_nobody_acts_with_another_ones_token(front: int, server: OurFlagServer, name: str) -> None:
    """The caller without a token is refused; the administrator's requests are answered correctly, and nothing is deleted."""
    for _ in range(TURNS):
        refused = first_answer(front, ATTACKS[name])
        assert refused.startswith((b"HTTP/1.1 401", b"HTTP/1.1 400")), refused[:200]
        answer = ask(f"http://127.0.0.1:{front}{KIND}", headers={"Authorization": USER_SECRET})
        assert (answer.status, b"Who owns it" in answer.body) == (200, True), "another request ran with this token"
    assert server.admin("/tag-types/team")["tagType"]["name"] == "team"


def first_answer(port: int, data: bytes) -> bytes:
    """Return the answer to these bytes, as far as it comes before the other side ends or is silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as caller, contextlib.suppress(OSError):
        caller.sendall(data)
        return caller.recv(65_536)
    return b""
