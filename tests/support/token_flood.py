"""A flood of random tokens, as a program of its own: `python token_flood.py PORT SECONDS RATE SOURCE ROUTE`.

It sends RATE requests a second for so long, each with an unknown token; with ROUTE `validate` instead of `proxy` each asks
which of a hundred such tokens are valid. SOURCE is the address of loopback that they come
from; `many` for a new address in X-Forwarded-For with each. At its end it prints as JSON how many were sent, and the counts of
statuses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import resource
import sys
from collections import Counter

TICK_S = 0.01
IN_A_QUESTION = 100
LAST_S = 10.0
"""Seconds that the last answers have."""


def make_token() -> str:
    return f"*:production.{random.getrandbits(200):050x}"


class Caller(asyncio.Protocol):
    """One connection, which sends a request when it has the answer to the one before."""

    def __init__(self, flood: Flood) -> None:
        self._flood = flood
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, request: bytes) -> None:
        assert self._transport is not None
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Count an answer that is complete."""
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            self._buffer = b""
            self._flood.statuses[head[9:12].decode()] += 1
            self._flood.settled.set()
            if b"connection: close" not in head.lower():
                self._flood.idle.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Use this connection no more."""
        if self in self._flood.idle:
            self._flood.idle.remove(self)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Flood:
    """All connections, and what came of their requests."""

    def __init__(self, port: int, source: str, route: str) -> None:
        self.statuses: Counter[str] = Counter()
        self.idle: list[Caller] = []
        self.every: list[Caller] = []
        self.sent = self.failed = 0
        self.settled = asyncio.Event()  # set by each answer and each connection that failed
        self._port = port
        self._asks = route == "validate"
        self._local = None if source == "many" else (source, 0)
        self._tasks: set[asyncio.Task[None]] = set()

    def request(self) -> bytes:
        """Return a request with an unknown token, or a question about many."""
        lines = ["GET /proxy HTTP/1.1", "Host: flags", f"Authorization: {make_token()}"]
        body = ""
        if self._asks:
            body = json.dumps({"tokens": [make_token() for _ in range(IN_A_QUESTION)]})
            lines = ["POST /edge/validate HTTP/1.1", "Host: flags", "Content-Type: application/json"]
            lines.append(f"Content-Length: {len(body)}")
        if self._local is None:
            lines.append(f"X-Forwarded-For: 198.{random.randint(18, 19)}.{random.randint(0, 255)}.{random.randint(1, 254)}")
        return "\r\n".join([*lines, "", body]).encode()

    def send(self) -> None:
        """Send a request on a connection that is idle, or on a new one."""
        self.sent += 1
        if self.idle:
            self.idle.pop().send(self.request())
            return
        task = asyncio.ensure_future(self._open())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            _, caller = await loop.create_connection(lambda: Caller(self), "127.0.0.1", self._port, local_addr=self._local)
        except OSError:
            self.failed += 1
            self.settled.set()
            return
        self.every.append(caller)
        caller.send(self.request())

    async def run(self, seconds: float, rate: float) -> None:
        """Send for so long, and wait for the last answers."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (passed := loop.time() - began) < seconds:
            for _ in range(int(passed * rate) - self.sent):
                self.send()
            await asyncio.sleep(TICK_S)  # the pace of the flood
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                while self.failed + self.statuses.total() < self.sent:
                    self.settled.clear()
                    await self.settled.wait()
        for caller in self.every:
            caller.close()


async def main(port: int, seconds: float, rate: float, source: str, route: str) -> None:
    """Flood, and print what came of it."""
    flood = Flood(port, source, route)
    await flood.run(seconds, rate)
    print(json.dumps({"sent": flood.sent, "failed": flood.failed, "connections": len(flood.every), "statuses": flood.statuses}))


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:6]))
