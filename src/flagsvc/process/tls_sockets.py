"""A TLS server that counts connections from before their handshake.

asyncio's servers report a connection only after its handshake. A client that opens connections and sends nothing would stay outside
all limits until the handshake times out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable
from typing import cast

from flagsvc.http.server.connection import Connection

ACCEPTS_PER_TURN = 64
"""The most connections that are accepted in one iteration of the loop."""
EXHAUSTED_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""The errors of a system that has no room for another connection."""
RETRY_S = 1.0
"""Seconds until the next attempt after such an error."""
TLS_CLOSE_S = 30.0
"""Seconds that a caller over TLS has to read the last answer and to close TLS; data that is not read by then is lost.

While the process ends, the HTTP connection cuts off callers that read nothing earlier than this.
"""


class TlsServer:
    """Takes the connections of a listening socket over TLS, in the running loop. Has the interface of `asyncio.Server`."""

    def __init__(
        self, sock: socket.socket, make: Callable[[], Connection], tls: ssl.SSLContext, handshake_s: float | None
    ) -> None:
        """Take the socket, which this closes, the function that makes a protocol, and the seconds that a handshake may take."""
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._make = make
        self._tls = tls
        self._handshake_s = handshake_s
        self._is_open = True
        self._tasks: set[asyncio.Task[None]] = set()
        sock.setblocking(False)
        self._listen()

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The socket; empty once it is closed."""
        return (self._sock,) if self._is_open else ()

    def close(self) -> None:
        """Take no more connections. Open connections and handshakes continue."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._sock)
            self._sock.close()

    async def wait_closed(self) -> None:
        """Do nothing: there is nothing to wait for."""

    def _listen(self) -> None:
        if self._is_open:
            self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        """Accept waiting connections."""
        for _ in range(ACCEPTS_PER_TURN):
            try:
                connection = self._sock.accept()[0]
            except OSError as error:  # no connection waits, or the client has closed it
                if error.errno in EXHAUSTED_ERRORS:
                    self._loop.remove_reader(self._sock)
                    self._loop.call_later(RETRY_S, self._listen)
                return
            self._start_handshake(connection)

    def _start_handshake(self, connection: socket.socket) -> None:
        """Start a task for the handshake of a connection."""
        protocol = begin_handshake(connection, self._make)
        if protocol is not None:
            task = self._loop.create_task(complete_handshake(connection, protocol, self._tls, self._handshake_s))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def begin_handshake(connection: socket.socket, make: Callable[[], Connection]) -> Connection | None:
    """Count a connection and return its protocol. If there is no room, close the connection and return None."""
    protocol = make()
    if protocol.handshake_begins():
        return protocol
    connection.close()
    return None


async def complete_handshake(
    connection: socket.socket, protocol: Connection, tls: ssl.SSLContext, handshake_s: float | None
) -> None:
    """Do the handshake of a connection. A connection that fails meanwhile is ignored."""
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(
                cast("Callable[[], asyncio.BaseProtocol]", lambda: protocol),
                connection,
                ssl=tls,
                ssl_handshake_timeout=handshake_s,
                ssl_shutdown_timeout=TLS_CLOSE_S,
            )
    finally:
        protocol.handshake_over()


async def serve_tls_connection(
    connection: socket.socket, make: Callable[[], Connection], tls: ssl.SSLContext, handshake_s: float | None
) -> None:
    """Take one connection over TLS, unless there is no room for it. Returns when the handshake is over."""
    protocol = begin_handshake(connection, make)
    if protocol is not None:
        await complete_handshake(connection, protocol, tls, handshake_s)
