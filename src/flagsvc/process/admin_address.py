"""The separate address for operators, with liveness, readiness and metrics, and the pages of the proxy (adminAddress).

It speaks plain HTTP, and only the pages may need a key, so it belongs on loopback, a private network or a Unix socket. It answers
from the start of the process to its end, also while there is no configuration.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from email.utils import formatdate
from functools import partial
from typing import Any, Self

from uvicorn.server import ServerState

from flagsvc.core.errors import ListenError
from flagsvc.core.notices import Notice
from flagsvc.core.version import version_text
from flagsvc.http.contract import Contract
from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from flagsvc.process.listen import describe_scope, listen, listen_url, serve_socket
from flagsvc.settings.network import split_address
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions

DATE_INTERVAL_S = 1.0
"""Seconds between two updates of the `Date` header."""
MAX_CONNECTIONS = 256
"""The most simultaneous connections; there are few probes and scrapers."""
SHUTDOWN_S = 2.0
"""Seconds that open requests have to finish at the end."""
SHUTDOWN_STEP_S = 0.02


class AdminAddressServer:
    """Answers operators while the context is entered. `line` is the notice with the address. The sockets are closed at the end."""

    def __init__(self, address: str, get_service: Callable[[], Contract], *, mode: str, keep_alive_s: float) -> None:
        """Open the sockets; `mode` is that of a Unix socket's file. Raises ListenError."""
        host, port = split_address(address)
        self._sockets = listen(host, port, mode=mode)
        self._state: Any = ServerState()  # its types name the protocols of uvicorn alone
        self._get_service = get_service
        self._make_protocol = ConnectionFactory(
            get_service, ConnectionLimits(keep_alive_s=keep_alive_s, connections=MAX_CONNECTIONS)
        )
        self._servers: list[asyncio.Server] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.line = f"flagsvc admin on {listen_url(self._sockets, host, '')}{describe_scope(self._sockets, host)}"

    async def __aenter__(self) -> Self:
        """Start to take connections."""
        self._update_date()
        self._tasks = [asyncio.create_task(each) for each in (self._keep_date(), self._get_service().run_beside())]
        make_protocol = partial(self._make_protocol, None, self._state, {})
        for each in self._sockets:
            self._servers.append(await serve_socket(each, make_protocol))
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Take no more connections, and finish open requests."""
        for each in self._tasks:
            each.cancel()
        for server in self._servers:
            server.close()
        self.close()
        await self._wait_closed()
        for connection in list(self._state.connections):
            connection.abort()

    def close(self) -> None:
        """Close the listening sockets."""
        for each in self._sockets:
            each.close()

    async def _wait_closed(self) -> None:
        """Wait until all connections are closed, for at most SHUTDOWN_S. One that was taken last may still appear."""
        for _ in range(int(SHUTDOWN_S / SHUTDOWN_STEP_S)):
            await asyncio.sleep(SHUTDOWN_STEP_S)
            for connection in list(self._state.connections):
                connection.shutdown()
            if not self._state.connections:
                return

    async def _keep_date(self) -> None:
        while True:
            await asyncio.sleep(DATE_INTERVAL_S)
            self._update_date()

    def _update_date(self) -> None:
        """Set the `Date` header to the present time."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]


def make_admin_address_server(
    options: ProxyOptions | ServerOptions, get_service: Callable[[], Contract], open_sockets: Iterable[socket.socket]
) -> AdminAddressServer | None:
    """Return the operators' server, or None if the options have no address for it.

    If it cannot listen, the `open_sockets` for callers are closed. Raises ListenError.
    """
    if options.admin_address is None:
        return None
    try:
        keep = options.keep_alive_timeout
        get_service()  # its imports happen before the first request
        return AdminAddressServer(options.admin_address, get_service, mode=options.socket_mode, keep_alive_s=keep)
    except ListenError:
        for each in open_sockets:
            each.close()
        raise


def listening_notices(address: str, admin_address_server: AdminAddressServer | None) -> list[Notice]:
    """Return the notices to print when a program listens at `address`."""
    lines = [f"flagsvc {version_text()} listening on {address}"] + (
        [] if admin_address_server is None else [admin_address_server.line]
    )
    return [Notice(line) for line in lines]
