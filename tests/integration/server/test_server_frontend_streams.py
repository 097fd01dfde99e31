"""Event streams for browsers at the flag server: a commit reaches the pages of its environment (dialects: Event streams)."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, OurFlagServer, our_flag_server

SHOP, LIVE, SHORT = "shop:development.of-the-shop", "*:production.of-the-live-page", "*:development.of-a-short-time"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "tokens": [
        {"type": "frontend", "secret": SHOP, "projects": ["shop"]},
        {"type": "frontend", "secret": LIVE, "environment": "production"},
        {"type": "frontend", "secret": SHORT},
    ],
    "features": [{"name": "basket", "project": "shop", "enabled": []}, {"name": "menu", "enabled": []}],
}
SECONDS = 10.0
BULK = "/ofrep/v1/evaluate/flags"


@pytest.fixture(scope="module")
def server() -> Iterator[OurFlagServer]:
    with our_flag_server(given=GIVEN, FLAGSVC_OFREP="true") as running:
        yield running


class Page:
    """A caller with an open stream."""

    def __init__(self, server: OurFlagServer, path: str, token: str | None) -> None:
        host, _, port = server.root.removeprefix("http://").partition(":")
        self.socket = socket.create_connection((host, int(port)), SECONDS)
        key = "" if token is None else f"authorization: {token}\r\n"
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n{key}\r\n".encode())
        self.lines = self.socket.makefile("r", encoding="utf-8", newline="")
        self.status = int(self.lines.readline().split()[1])
        if self.status == 200:
            self.wait("id: ")

    def close(self) -> None:
        self.lines.close()
        self.socket.close()

    def wait(self, start: str) -> str:
        """Return the rest of the next line with this start; empty if the stream ends before."""
        for line in self.lines:
            if line.startswith(start):
                return line.removeprefix(start).strip()
        return ""

    def hint(self) -> str:
        """Return the version of the next hint."""
        return str(json.loads(self.wait("data: "))["etag"])

    def hears(self) -> bool:
        """Return whether anything comes within a moment."""
        self.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            return bool(self.socket.recv(1))
        return False


Open = Callable[[str, str | None], Page]
"""Opens a page with this path and this token."""


@pytest.fixture
def opened(server: OurFlagServer) -> Iterator[Open]:
    with contextlib.ExitStack() as every:
        yield lambda path, token: every.enter_context(contextlib.closing(Page(server, path, token)))


def stream_url(server: OurFlagServer, token: str) -> str:
    """Return the URL of the stream that the answer with all flags names."""
    answer = server_ask(server, "POST", BULK, token, {"context": {}})
    return str(answer["eventStreams"][0]["endpoint"]["requestUri"])


def server_ask(server: OurFlagServer, method: str, path: str, token: str, body: object) -> Any:
    at_root = OurFlagServer(server.root, server.program)
    answer = at_root.ask(method, path, body, token=token)
    assert answer.status == 200, answer.body
    return answer.json()


def switch(server: OurFlagServer, on: bool, flag: str = "menu", project: str = "default", environment: str = "development") -> None:
    word = "on" if on else "off"
    answer = server.ask("POST", f"/admin/projects/{project}/features/{flag}/environments/{environment}/{word}")
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("way", ["key", "ticket"])
def test_a_commit_reaches_the_pages_of_its_environment(server: OurFlagServer, opened: Open, way: str) -> None:
    """Pages of the environment hear of a commit without asking, those of one project as well. Those of another hear nothing."""
    tokens = (FRONTEND_SECRET, SHOP, LIVE)
    pages = [opened("/api/frontend/stream", token) if way == "key" else opened(stream_url(server, token), None) for token in tokens]
    assert [each.status for each in pages] == [200] * 3
    switch(server, on=True)
    assert pages[0].hint() == pages[1].hint()
    switch(server, on=False)
    assert pages[0].hint() and not pages[2].hears()


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("unknown", 401), (BACKEND_SECRET, 403)])
def test_only_frontend_tokens_open_a_stream(opened: Open, token: str | None, status: int) -> None:
    assert opened("/api/frontend/stream", token).status == status


def test_a_ticket_is_signed_with_the_tokens_of_its_environment(server: OurFlagServer, opened: Open) -> None:
    """A ticket that is changed, or names an environment without a frontend token, is 401: only the server can sign it."""
    url = stream_url(server, FRONTEND_SECRET)
    assert opened(url, None).status == 200
    ticket = url.partition("ticket=")[2].partition("&")[0]
    signed, _, mac = ticket.partition(".")
    fields = json.loads(base64.urlsafe_b64decode(signed + "=="))
    for environment in ("production", "nowhere", ""):
        other = base64.urlsafe_b64encode(json.dumps([environment, *fields[1:]]).encode()).rstrip(b"=").decode()
        assert opened(f"/ofrep/v1/stream?ticket={other}.{mac}", None).status == 401, environment


def test_a_stream_says_what_was_missed(server: OurFlagServer, opened: Open) -> None:
    """The URL has the version of its answer. Who opens it after a commit hears of it at once."""
    url = stream_url(server, FRONTEND_SECRET)
    switch(server, on=True, flag="basket", project="shop")
    assert opened(url, None).hint() not in ("", url.rpartition("at=")[2])
