"""Event streams of pages pass a reverse proxy with nginx's usual settings, which keeps other answers back until they are whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from support.balancers import nginx_as
from support.flagservers import USER_SECRET, our_flag_server
from support.processes import answers, free_port, our_proxy

pytestmark = pytest.mark.programs
WAIT_S = 20


@contextmanager
def stream(port: int, token: str = "") -> Iterator[HTTPResponse]:
    """Open the stream at a port of this machine until the block ends."""
    connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    try:
        connection.request("GET", "/ui/stream", headers={"Authorization": token} if token else {})
        yield connection.getresponse()
    finally:
        connection.close()


def names(opened: HTTPResponse) -> Iterator[str]:
    """Yield the names of events as they come."""
    while line := opened.readline():
        if line.startswith(b"event: "):
            yield line.removeprefix(b"event: ").decode().strip()


def test_a_change_on_the_flag_server() -> None:
    """A change is told while the stream stays open."""
    with our_flag_server() as server:
        behind = f"    server {server.root.removeprefix('http://')};"
        with nginx_as(behind, "/health") as port, stream(port, USER_SECRET) as opened:
            assert opened.status == 200 and opened.readline() == b"retry: 5000\n"
            server.admin("/projects/default/features", {"name": "told"})
            assert "revision" in names(opened)


def test_the_numbers_of_a_proxy_with_workers(tmp_path: Path) -> None:
    """The parent of two workers tells the numbers of each second."""
    (tmp_path / "document.json").write_text(json.dumps({"features": []}))
    desk = free_port()
    given = {"FLAGSVC_ADMIN_ADDRESS": f"127.0.0.1:{desk}", "FLAGSVC_STORAGE": "none"}
    with our_proxy(f"file://{tmp_path}/document.json", "--workers", "2", **given) as proxy:
        proxy.program.wait(lambda: answers(f"http://127.0.0.1:{desk}/ui/status"), "pages")
        host = 'proxy_set_header Connection ""; proxy_set_header Host $http_host;'
        with nginx_as(f"    server 127.0.0.1:{desk};", "/ui/status", host) as port, stream(port) as opened:
            assert opened.status == 200
            assert "second" in names(opened)
