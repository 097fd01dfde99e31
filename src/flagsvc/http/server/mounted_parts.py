"""An answer in parts under an ASGI server: parts wait in a bounded queue until the server takes them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

from flagsvc.http.parts import Outlet, Parts

MAX_WAITING: Final = 65_536
"""The most bytes that wait for a slow reader when another part comes. Then it is dropped."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


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
