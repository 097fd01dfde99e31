"""Taking connections over TLS, so that those that never shake hands are counted as well.

asyncio's servers tell nobody of a connection before its handshake is done: whoever opens some and says nothing would be held, out
of reach of every limit, until the time for it is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Protocol, cast

TAKEN = 64
"""Connections that are taken before others get their turn."""
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What the system says when it has no room for another connection,"""
PAUSE_S = 1.0
"""which is then tried again after so many seconds."""
FAREWELL_S = 30.0
"""Seconds that a caller over TLS has at the end to take what was written and to say goodbye: what is not taken by then is lost.

The front cuts off sooner whoever takes nothing while the process ends.
"""


class HandshakeProtocol(Protocol):
    """The protocol of a connection that is counted from before its handshake on."""

    def handshake_begins(self) -> bool:
        """Count it; return False where there is no room for it."""

    def handshake_over(self) -> None:
        """Count it no longer where it was not made; called in any case."""


class TlsServer:
    """Takes the connections of a listening socket over TLS, from now on, in the running loop; otherwise as `asyncio.Server`."""

    def __init__(
        self, sock: socket.socket, make: Callable[[], HandshakeProtocol], tls: ssl.SSLContext, handshake_s: float | None
    ) -> None:
        """Take the socket, which is closed with it, what makes the protocol of each, and how many seconds a handshake may take."""
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._make = make
        self._tls = tls
        self._handshake_s = handshake_s
        self._open = True
        self._tasks: set[asyncio.Task[None]] = set()
        sock.setblocking(False)
        self._listen()

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The socket, none once it is closed."""
        return (self._sock,) if self._open else ()

    def close(self) -> None:
        """Take no more; those that are here go on, also in their handshake."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._sock)
            self._sock.close()

    async def wait_closed(self) -> None:
        """Return: nothing is left to be done."""

    def _listen(self) -> None:
        if self._open:
            self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        """Take connections that wait."""
        for _ in range(TAKEN):
            try:
                taken = self._sock.accept()[0]
            except OSError as error:  # nobody waits, or whoever did has gone
                if error.errno in EXHAUSTED:
                    self._loop.remove_reader(self._sock)
                    self._loop.call_later(PAUSE_S, self._listen)
                return
            self._take(taken)

    def _take(self, taken: socket.socket) -> None:
        """Shake hands with a connection beside all else."""
        protocol = begun(taken, self._make)
        if protocol is not None:
            task = self._loop.create_task(shake_hands(taken, protocol, self._tls, self._handshake_s))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def begun(taken: socket.socket, make: Callable[[], HandshakeProtocol]) -> HandshakeProtocol | None:
    """Return the protocol of a connection that is counted from now on; None where there is no room, and it was closed."""
    protocol = make()
    if protocol.handshake_begins():
        return protocol
    taken.close()
    return None


async def shake_hands(
    taken: socket.socket, protocol: HandshakeProtocol, tls: ssl.SSLContext, handshake_s: float | None
) -> None:
    """Have a connection speak TLS; one that breaks off meanwhile is nobody's loss."""
    taken.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(
                cast("Callable[[], asyncio.BaseProtocol]", lambda: protocol),
                taken,
                ssl=tls,
                ssl_handshake_timeout=handshake_s,
                ssl_shutdown_timeout=FAREWELL_S,
            )
    finally:
        protocol.handshake_over()


async def take_secured(
    taken: socket.socket, make: Callable[[], HandshakeProtocol], tls: ssl.SSLContext, handshake_s: float | None
) -> None:
    """Take one connection over TLS, unless there is no room for it; return when the handshake is over."""
    protocol = begun(taken, make)
    if protocol is not None:
        await shake_hands(taken, protocol, tls, handshake_s)
