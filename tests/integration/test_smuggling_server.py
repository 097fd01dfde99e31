"""Behind a balancer that shares one connection among callers, a caller without a token cannot use an administrator's."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.flagservers import USER_SECRET, OurFlagServer, our_flag_server
from support.processes import ask
from support.smuggling import BALANCERS

SECONDS = 10.0
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


HIDDEN = f"\r\n\r\nDELETE {KIND} HTTP/1.1\r\nHost: flags\r\nX-Rest: ".encode()
"""The administrator's next request line becomes the value of a header, and its token the token of this."""
ATTACKS = {
    "small": attack("Connection: upgrade\r\nUpgrade: websocket", HIDDEN),
    "large": attack("Connection: upgrade\r\nUpgrade: websocket", b"\r\n" * 40_000 + HIDDEN),
    "h2c": attack("Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\nUpgrade: h2c", HIDDEN),
    "in capitals": attack("CONNECTION: UPGRADE\r\nUPGRADE: WebSocket", HIDDEN),
    "without an upgrade": attack("X: y", HIDDEN),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_nobody_acts_with_another_ones_token(front: int, server: OurFlagServer, name: str) -> None:
    """The caller without a token is refused; the administrator's requests are answered correctly, and nothing is deleted."""
    for _ in range(TURNS):
        refused = sent(front, ATTACKS[name])
        assert refused.startswith((b"HTTP/1.1 401", b"HTTP/1.1 400")), refused[:200]
        answer = ask(f"http://127.0.0.1:{front}{KIND}", headers={"Authorization": USER_SECRET})
        assert (answer.status, b"Who owns it" in answer.body) == (200, True), "another request ran with this token"
    assert server.admin("/tag-types/team")["tagType"]["name"] == "team"


def sent(port: int, data: bytes) -> bytes:
    """Return the answer to these bytes, as far as it comes before the other side ends or is silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as caller, contextlib.suppress(OSError):
        caller.sendall(data)
        return caller.recv(65_536)
    return b""
