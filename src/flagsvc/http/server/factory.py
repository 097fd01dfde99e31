"""The HTTP protocol for uvicorn: makes one of our connections for each of uvicorn's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from flagsvc.http.contract import Contract
from flagsvc.http.server.connection import Connection
from flagsvc.http.server.connection_limits import ConnectionLimits
from flagsvc.http.server.encoder import ServerState
from flagsvc.http.server.header_names import HeaderNames
from flagsvc.http.server.shared import SharedState

EXTRA_BYTES = 4096
"""Bytes of a head for method and path, in addition to its headers and query."""


class ConnectionFactory:
    """Makes the connections of a server. uvicorn calls it like a protocol class: `uvicorn.Config(http=ConnectionFactory(…))`.

    `contract` is called for each connection, which keeps the returned contract.
    """

    def __init__(self, contract: Callable[[], Contract], limits: ConnectionLimits) -> None:
        self._contract = contract
        self._limits = limits
        self._draining = False
        self._shared: SharedState | None = None
        self._names = HeaderNames({}, 0)
        self._headers: dict[bytes, int] | None = None

    def __call__(
        self,
        config: object,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:
        """Return the protocol of a new connection. `config` and `app_state` are uvicorn's, and not used."""
        contract = self._contract()
        if contract.headers is not self._headers:
            limit = contract.header_limit + contract.query_limit + EXTRA_BYTES
            self._headers, self._names = contract.headers, HeaderNames(contract.headers, limit)
        return Connection(self._shared_by(server_state, _loop), contract, self._names)

    @property
    def answered(self) -> int:
        """How many requests were answered."""
        return 0 if self._shared is None else self._shared.answered

    def drain(self) -> None:
        """Make every answer from now on the last of its connection, so that callers move to another server.

        Answers in parts end now.
        """
        self._draining = True
        if self._shared is not None:
            self._shared.drain()

    def _shared_by(self, server_state: ServerState, loop: asyncio.AbstractEventLoop | None) -> SharedState:
        """Return the shared state of a server's connections. Only one server runs at a time."""
        shared = self._shared
        if shared is None or shared.server is not server_state:
            shared = self._shared = SharedState(server_state, self._limits, loop or asyncio.get_running_loop())
            shared.draining = self._draining
        return shared
