"""An adapter from the contract to ASGI servers. The contract decides all answers.

Mounted in another application, it serves below the mount path (`root_path`) and gets no lifespan events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from mypy_extensions import i64

from flagsvc.http.call import Call
from flagsvc.http.contract import Contract
from flagsvc.http.deadlines import run_until_gone
from flagsvc.http.messages import Headers, Request, Response
from flagsvc.http.parts import Outlet, Parts, PartsResponse

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Step: TypeAlias = Callable[[], Awaitable[None]]


UPGRADE: Final = b"upgrade"
CODING: Final = b"transfer-encoding"
LENGTH: Final = b"content-length"
CHUNKED: Final = b"chunked"


class AsgiApp:
    """An ASGI application around a contract. It awaits `startup` and `shutdown` at the start and the end of the lifespan."""

    def __init__(self, contract: Contract, startup: Step, shutdown: Step) -> None:
        self._contract = contract
        self._startup = startup
        self._shutdown = shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one scope: an HTTP request or the lifespan. A WebSocket is refused."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A caller that has gone before its body arrived, or while it waited, gets no answer."""
        request = request_of(scope)
        admitted = self._contract.admit(request)
        if not isinstance(admitted, Response):
            body = await read_body(receive, admitted.limit) if admitted.limit else b""
            if body is None:
                return
            answer = await self._answer(admitted, body, receive)
            if answer is None:
                return
            admitted = answer
        headers = admitted.headers()
        version = scope.get("http_version", "1.1")
        if version < "2" and (admitted.close or oddly_framed(request.headers, version)):
            headers.append((b"connection", b"close"))
        try:
            await send({"type": "http.response.start", "status": admitted.status, "headers": headers})
            if isinstance(admitted, PartsResponse):
                await run_until_gone(send_parts(admitted.parts, send), lambda: gone(receive))
                return
            await send({"type": "http.response.body", "body": admitted.body})
        except OSError:  # how ASGI servers say that the caller is gone
            return

    async def _answer(self, admitted: Call, body: bytes, receive: Receive) -> Response | None:
        """Return the contract's answer; None if the caller goes away before an answer that takes time."""
        answer = admitted.handler.answer(admitted, body)
        if isinstance(answer, Response):
            return answer
        return await run_until_gone(answer, lambda: gone(receive))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Start and stop the application when the server says so."""
        while True:
            event = (await receive())["type"].removeprefix("lifespan.")
            step = self._startup if event == "startup" else self._shutdown
            try:
                await step()
            except Exception as error:
                await send({"type": f"lifespan.{event}.failed", "message": str(error)})
                return
            await send({"type": f"lifespan.{event}.complete"})
            if event == "shutdown":
                return


async def gone(receive: Receive) -> bool:
    """Return True when the caller has gone. Returns False if the server only repeats the end of the body, and so never says it."""
    ends = 0
    while ends < 2:
        message = await receive()
        if message["type"] == "http.disconnect":
            return True
        if not message.get("more_body", False):
            ends += 1
    return False


def request_of(scope: Scope) -> Request:
    root = scope.get("root_path", "").rstrip("/").encode()
    client = scope.get("client")
    return Request(
        scope["method"].encode("latin-1"),
        path_below(scope, root),
        scope["query_string"],
        headers_of(scope["headers"]),
        peer=client[0] if client else "",
        scheme=scope.get("scheme", "http"),
        root=root,
    )


def oddly_framed(headers: Headers, version: str) -> bool:
    """Return whether another program on the way may see another end of this request than our server.

    This is so for an upgrade, which some servers take for the end of HTTP, for a coding in HTTP/1.0 or other than `chunked`,
    and for two lengths. Such a connection is not used again, because the bytes after the request may belong to its body.
    """
    framing: i64 = 0
    for name, value in headers:
        if name == UPGRADE:
            return True
        if name == CODING:
            if version == "1.0" or value.strip().lower() != CHUNKED:
                return True
            framing += 1
        elif name == LENGTH:
            framing += 1
    return framing > 1


def path_below(scope: Scope, root: bytes) -> bytes:
    """Return the path below the mount path, as the caller sent it, if the server provides that form."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    if b"?" in path:
        path = path.partition(b"?")[0]
    if not root:
        return path
    if not path.startswith(root):
        path = scope["path"].encode()
    return path[len(root) :] if path.startswith(root + b"/") or path == root else path


def headers_of(headers: Iterable[Any]) -> Headers:
    """Return the headers as a list of pairs; the server's own list if it is one."""
    if isinstance(headers, list) and (not headers or isinstance(headers[0], tuple)):
        return headers
    return [(name, value) for name, value in headers]


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """Return the body, or its beginning up to one byte over the limit; None if the caller has gone."""
    whole = bytearray()
    while len(whole) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        whole += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(whole)


MAX_WAITING: Final = 65_536
"""The most bytes that wait for a slow reader when another part comes. Then it is dropped."""


class QueuedOutlet(Outlet):
    """The queue of one answer. `ended` tells that no part follows."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self.ended = False

    def write(self, data: bytes) -> None:
        """Queue a part. The answer to a caller that does not read ends."""
        if self._size > MAX_WAITING:
            self._waiting.clear()
            self.end()
            return
        self._waiting.append(data)
        self._size += len(data)
        self._news.set()

    def is_full(self) -> bool:
        return self._size > MAX_WAITING

    def waiting(self) -> int:
        return self._size

    def end(self) -> None:
        """End the answer after the queued parts."""
        self.ended = True
        self._parts.lose()
        self._news.set()

    async def take(self) -> bytes | None:
        """Return the next part when it is there; None after the last one."""
        while not self._waiting:
            if self.ended:
                return None
            self._news.clear()
            await self._news.wait()
        data = self._waiting.popleft()
        self._size -= len(data)
        return data


async def send_parts(parts: Parts, send: Send) -> bool:
    """Send every part of an answer, and return True. The caller of this function cancels it when the reader has gone."""
    outlet = QueuedOutlet(parts)
    parts.open(outlet)
    try:
        with suppress(OSError):  # how ASGI servers say that the caller is gone
            while (data := await outlet.take()) is not None:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
    finally:
        parts.lose()
    return True
