"""The operators' own address: liveness, readiness and metrics, apart from callers (adminAddress).

It speaks plain HTTP without keys, so it belongs on loopback, a private network or a Unix socket. It answers from the start to the
very end, also while there is no configuration.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from email.utils import formatdate
from functools import partial
from typing import Any, Self

from flagsvc.core.errors import ListenError
from flagsvc.core.notices import Notice
from flagsvc.core.version import version_text
from flagsvc.http.server import Limits, front
from flagsvc.process.listen import listen, scope, take, url
from flagsvc.proxy.api.service import Service
from flagsvc.settings.network import split_address
from flagsvc.settings.options import ProxyOptions

TICK_S = 1.0
MOST = 256
"""Connections that are held at once: probes and scrapers are few."""
LEAVE_S = 2.0
"""Seconds that answers on their way have at the end."""
STEP_S = 0.02


class Connections:
    """What the connections of this address share with whoever serves them; uvicorn has the same for its own."""

    def __init__(self) -> None:
        self.connections: set[Any] = set()
        self.tasks: set[asyncio.Task[object]] = set()
        self.total_requests = 0
        self.default_headers: list[tuple[bytes, bytes]] = []

    def tick(self) -> None:
        """Take the time for the headers."""
        self.default_headers = [(b"date", formatdate(usegmt=True).encode())]


class OperatorsServer:
    """Answers operators while it is entered; `line` says where. The sockets are closed in the end."""

    def __init__(self, address: str, provide: Callable[[], Service], *, mode: str, keep_alive_s: float) -> None:
        """Take where to listen, who answers, the mode of a Unix socket. Raises ListenError."""
        host, port = split_address(address)
        self._sockets = listen(host, port, mode=mode)
        self._state = Connections()
        self._make = front(provide, Limits(keep_alive_s=keep_alive_s, connections=MOST))
        self._servers: list[asyncio.Server] = []
        self._ticking: asyncio.Task[None] | None = None
        self.line = f"flagsvc admin on {url(self._sockets, host, '')}{scope(self._sockets, host)}"

    async def __aenter__(self) -> Self:
        """Begin."""
        self._state.tick()
        self._ticking = asyncio.create_task(self._tick())
        made = partial(self._make, None, self._state, {})
        for each in self._sockets:
            self._servers.append(await take(each, made))
        return self

    async def __aexit__(self, *raised: object) -> None:
        """End: take no more, finish what has begun."""
        if self._ticking is not None:
            self._ticking.cancel()
        for server in self._servers:
            server.close()
        self.close()
        await self._empty()
        for connection in list(self._state.connections):
            connection.abort()

    def close(self) -> None:
        """Close the listening sockets."""
        for each in self._sockets:
            each.close()

    async def _empty(self) -> None:
        """Return when every connection is gone, or has had time enough; one may still come that was taken just before the end."""
        for _ in range(int(LEAVE_S / STEP_S)):
            await asyncio.sleep(STEP_S)
            for connection in list(self._state.connections):
                connection.shutdown()
            if not self._state.connections:
                return

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._state.tick()


def make_operators_server(
    options: ProxyOptions, provide: Callable[[], Service], opened: Iterable[socket.socket]
) -> OperatorsServer | None:
    """Return the desk that the options ask for, None where they ask for none.

    Where it cannot have its address, what was `opened` for callers is closed. Raises ListenError.
    """
    if options.admin_address is None:
        return None
    try:
        keep = options.keep_alive_timeout
        return OperatorsServer(options.admin_address, provide, mode=options.socket_mode, keep_alive_s=keep)
    except ListenError:
        for each in opened:
            each.close()
        raise


def announced(address: str, operators_server: OperatorsServer | None) -> list[Notice]:
    """Return what to print when callers are taken at `address`."""
    lines = [f"flagsvc {version_text()} listening on {address}"] + (
        [] if operators_server is None else [operators_server.line]
    )
    return [Notice(line) for line in lines]
