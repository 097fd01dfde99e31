"""TLS of the listening sockets: certificate, key and authorities of clients, which are reloaded when their files change.

Servers get one `context` that never changes. It passes each new connection to the present context. So new certificates and
authorities apply from the next handshake on, and no old session can be resumed. If new files cannot be used, the old settings stay.

The TLS server counts connections from before their handshake. asyncio's servers report a connection only after it: a client that
opens connections and sends nothing would stay outside all limits until the handshake times out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import threading
from collections.abc import Callable
from random import random
from typing import Self, cast

from flagsvc.core.background import SupervisedTask
from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, WatchedFiles, load_authorities
from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import ConfigurationError
from flagsvc.core.log import Logger
from flagsvc.http.server.connection import Connection
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions

NAMES = CertificateOptionNames("tlsCert", "tlsKey", "tlsKeyPassword")
CLIENT_CA = "tlsClientCa"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
CHECK_INTERVAL_S = 2.0
"""Seconds between two checks of the files, where no option sets it."""


class CurrentContext(ssl.SSLContext):
    """The context that servers get. It passes each connection to the `current` context."""

    current: ssl.SSLContext

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Start the TLS of one connection. The event loops call this."""
        return self.current.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


class Tls:
    """The TLS of one process. `context` is for servers, and a handshake may take `handshake_s` seconds. `expiry` is the end of the
    certificate in seconds since the epoch; None if it is not known.

    While this is entered, the files are checked every `check_interval_s` seconds, unless that is 0.
    """

    def __init__(self, options: ProxyOptions | ServerOptions, log: Logger, check_interval_s: float = CHECK_INTERVAL_S) -> None:
        """Take options that have a certificate. Raises ConfigurationError if a file cannot be used."""
        self._look_s = check_interval_s
        self._options = options
        self._log = log
        self._certificate = CertificateFiles(NAMES, options.tls_cert or "", options.tls_key, options.tls_key_password)
        authorities = () if options.tls_client_ca is None else (options.tls_client_ca,)
        self._lock = threading.Lock()
        self._files = WatchedFiles([*self._certificate.paths, *authorities])
        self._watching = SupervisedTask("watching TLS files", self._watch, clock=SystemClock(), log=log, draw=random)
        self.handshake_s = float(options.tls_handshake_timeout)
        self.context = CurrentContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.current = self._read()
        self.expiry = self._certificate.find_expiry()

    def _read(self) -> ssl.SSLContext:
        """Return a context with the present content of the files. Raises ConfigurationError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = VERSIONS[self._options.tls_min_version]
        context.set_alpn_protocols(["http/1.1"])
        context.options |= ssl.OP_NO_RENEGOTIATION
        self._certificate.load(context)
        if self._options.tls_client_ca is not None:
            load_authorities(context, CLIENT_CA, self._options.tls_client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    @property
    def restarts(self) -> int:
        """How often the loop that watches the files was restarted after a failure."""
        return self._watching.restarts

    def reload(self) -> bool:
        """Reload the files and return whether they can be used. If not, that is logged and the old settings stay."""
        self._files.accept()
        return self._reload_files()

    def _reload_files(self) -> bool:
        """Read the files and use them. Threads take turns, so that the files that were read last apply."""
        with self._lock:
            try:
                self.context.current = self._read()
                self.expiry = self._certificate.find_expiry()
            except ConfigurationError as error:
                self._log.error("the new TLS files are refused", error=error)
                return False
        self._log.info("TLS files read again", certificate=self._certificate.cert)
        return True

    async def __aenter__(self) -> Self:
        """Start to watch the files."""
        if self._look_s:
            self._watching.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Stop watching the files."""
        await self._watching.stop()

    async def _watch(self) -> None:
        """Reload the files whenever they have changed."""
        while True:
            await asyncio.sleep(self._look_s)
            if await asyncio.to_thread(self._files.detect_change):
                await asyncio.to_thread(self._reload_files)


def make_tls(options: ProxyOptions | ServerOptions, log: Logger, check_interval_s: float = CHECK_INTERVAL_S) -> Tls | None:
    """Return the TLS of the options, or None if they have no certificate. Raises ConfigurationError."""
    return None if options.tls_cert is None else Tls(options, log, check_interval_s)


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

    def __init__(self, sock: socket.socket, make: Callable[[], Connection], tls: ssl.SSLContext, handshake_s: float | None) -> None:
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
