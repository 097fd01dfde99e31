"""The adapter for ASGI servers."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest

from flagsvc.engine.context import Context
from flagsvc.http.server.asgi import AsgiApp, headers_of, path_below, read_body, request_of
from support.aio import until
from support.serving import Serving


def app(serving: Serving | None = None, **steps: AsyncMock) -> AsgiApp:
    """Return the application of a service, with its start and its stop."""
    return AsgiApp((serving or Serving()).service, steps.get("start", AsyncMock()), steps.get("stop", AsyncMock()))


def scope(**changes: Any) -> dict[str, Any]:
    usual = {
        "type": "http",
        "method": "GET",
        "path": "/proxy",
        "raw_path": b"/proxy",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"authorization", b"k")],
        "client": ("192.0.2.1", 5000),
        "scheme": "http",
    }
    return {name: value for name, value in (usual | changes).items() if value is not None}


def run(application: Any, scope: dict[str, Any], *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the application's messages for a scope and these received messages."""
    waiting, sent = list(messages), []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    return sent


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, b"/proxy"),
        ({"path": "/proxy/é", "raw_path": b"/proxy/%C3%A9"}, b"/proxy/%C3%A9"),
        ({"path": "/proxy/é", "raw_path": None}, "/proxy/é".encode()),
        ({"raw_path": b"/proxy?a=b"}, b"/proxy"),
        ({"root_path": "/m", "path": "/m/proxy", "raw_path": b"/m/proxy"}, b"/proxy"),
        ({"root_path": "/m/", "path": "/m/proxy", "raw_path": b"/m/proxy"}, b"/proxy"),
        ({"root_path": "/m", "path": "/m", "raw_path": b"/m"}, b""),
        ({"root_path": "/m", "path": "/m/m/proxy", "raw_path": b"/m/m/proxy"}, b"/m/proxy"),
        ({"root_path": "/m", "path": "/mproxy", "raw_path": b"/mproxy"}, b"/mproxy"),
        ({"root_path": "/é", "path": "/é/proxy", "raw_path": b"/%C3%A9/proxy"}, b"/proxy"),
        ({"root_path": "/outer", "path": "/proxy", "raw_path": b"/proxy"}, b"/proxy"),
    ],
)
def test_the_path_below_the_mount(changes: dict[str, Any], path: bytes) -> None:
    """The path is as the caller sent it, if the server provides that, otherwise decoded; without the mount path."""
    assert request_of(scope(**changes)).path == path
    assert path_below(scope(**changes), scope(**changes)["root_path"].rstrip("/").encode()) == path


def test_where_a_request_came_from() -> None:
    """Peer, scheme and mount; a Unix socket has no peer."""
    request = request_of(scope(root_path="/m/", scheme="https"))
    assert (request.peer, request.scheme, request.root) == ("192.0.2.1", "https", b"/m")
    assert request_of(scope(client=None)).peer == ""


def test_headers_in_any_form() -> None:
    """Servers give tuples in a list, or anything alike."""
    pairs = [(b"a", b"b")]
    assert headers_of(pairs) is pairs
    assert headers_of([[b"a", b"b"]]) == pairs
    assert headers_of(iter(pairs)) == pairs
    assert headers_of([]) == []
    assert run(app(), scope(headers=[[b"authorization", b"k"]]))[0]["status"] == 200


def test_a_websocket_is_refused() -> None:
    """It is closed before it is accepted; an unknown scope is left alone."""
    assert run(app(), {"type": "websocket"})[0]["type"] == "websocket.close"
    assert run(app(), {"type": "something"}) == []


def test_a_caller_that_leaves_before_its_body() -> None:
    """Nothing is sent, nothing is logged."""
    serving = Serving()
    headers = [(b"authorization", b"k"), (b"content-length", b"5")]
    part = {"type": "http.request", "body": b"{", "more_body": True}
    gone = {"type": "http.disconnect"}
    assert run(app(serving), scope(method="POST", headers=headers), part, gone) == []
    assert serving.log.lines == []


def test_a_caller_that_leaves_before_the_answer() -> None:
    """A send that fails because the caller is gone is no error."""

    receive = AsyncMock(return_value={"type": "http.request", "body": b"", "more_body": False})
    send = AsyncMock(side_effect=OSError("gone"))
    asyncio.run(app()(scope(), receive, send))
    assert send.called


def test_a_body_is_read_no_further_than_needed() -> None:
    """One message over the limit and no more; a message without a body is none."""
    receive = AsyncMock(return_value={"type": "http.request", "body": b"x" * 10, "more_body": True})
    assert asyncio.run(read_body(receive, 25)) == b"x" * 30
    assert receive.call_count == 3
    assert asyncio.run(read_body(AsyncMock(return_value={"type": "http.request"}), 25)) == b""


@pytest.mark.parametrize(("version", "closed"), [("1.0", True), ("1.1", True), ("2", False), ("3", False)])
def test_a_connection_that_is_of_no_more_use(version: str, closed: bool) -> None:
    """The answer closes an HTTP/1 connection. HTTP/2 has no such header."""
    headers = [(b"content-length", b"1000000000")]
    start, _ = run(app(), scope(method="POST", path="/x", raw_path=b"/x", headers=headers, http_version=version))
    assert ((b"connection", b"close") in start["headers"]) is closed


@pytest.mark.parametrize("body", [b"", b"{}"])
async def test_a_caller_that_leaves_while_it_waits(body: bytes) -> None:
    """Takes the enricher along; nothing is sent, nothing logged, nothing left."""
    before = asyncio.all_tasks()
    begun, send = asyncio.Event(), AsyncMock()

    async def hang(context: Context) -> Context:
        begun.set()
        await asyncio.Event().wait()
        return context

    serving = Serving(enrichers=[hang], enricher_timeout=60_000)
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        await begun.wait()
        return {"type": "http.disconnect"}

    headers = [(b"authorization", b"k"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await app(serving)(scope(method="POST" if body else "GET", headers=headers), receive, send)
    await until(lambda: asyncio.all_tasks() == before)
    assert begun.is_set() and not send.called and serving.log.lines == []


@pytest.mark.parametrize("messages", [[], [{"type": "http.request"}] * 2], ids=["raises", "repeats the end of the body"])
def test_a_server_that_does_not_tell_who_is_there(messages: list[dict[str, Any]]) -> None:
    """Its callers get their answers."""

    async def later(context: Context) -> Context:
        for _ in range(10):
            await asyncio.sleep(0)
        return context

    sent = run(app(Serving(enrichers=[later])), scope(), *messages)
    assert [message.get("status") for message in sent] == [200, None]
