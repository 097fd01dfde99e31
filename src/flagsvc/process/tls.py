"""TLS of the sockets that a process listens on: certificate and key, who may call, and all of it read anew when it changes.

Servers get one `context` for good. Each new connection is handed to the settings that are current then: a new certificate, and
new authorities, hold from the next handshake on, and nothing of the old ones is left to resume a session with. Files that cannot
be used leave everything as it was.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from random import random
from typing import Protocol, Self

from flagsvc.core.background import SupervisedTask
from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, WatchedFiles, load_authorities
from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import ConfigurationError
from flagsvc.core.log import Logger

NAMES = CertificateOptionNames("tlsCert", "tlsKey", "tlsKeyPassword")
CLIENT_CA = "tlsClientCa"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
LOOK_S = 2.0
"""Seconds between two looks at the files, where no option says so."""


class Options(Protocol):
    """The options that decide about TLS (`ProxyOptions`, `ServerOptions`)."""

    @property
    def tls_cert(self) -> str | None:
        """The certificate's file, None for no TLS at all."""

    @property
    def tls_key(self) -> str | None:
        """The key's file, where it is not the certificate's."""

    @property
    def tls_key_password(self) -> str | None:
        """What opens the key."""

    @property
    def tls_min_version(self) -> str:
        """The lowest version that is spoken, a key of VERSIONS."""

    @property
    def tls_client_ca(self) -> str | None:
        """The file of authorities that callers need a certificate of."""

    @property
    def tls_handshake_timeout(self) -> int:
        """Seconds that a handshake may take."""


class CurrentContext(ssl.SSLContext):
    """What servers get: it makes no connection secure by itself, it has that done by the settings that are current."""

    current: ssl.SSLContext

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin the TLS of one connection: what the event loops call."""
        return self.current.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


class Tls:
    """The TLS of one process. `context` is for servers, a handshake may take `handshake_s` seconds.

    While it is entered the files are looked at every `look_s` seconds, unless that is 0.
    """

    def __init__(self, options: Options, log: Logger, look_s: float = LOOK_S) -> None:
        """Take options with a certificate. Raises ConfigurationError where a file cannot be used."""
        self._look_s = look_s
        self._options = options
        self._log = log
        self._pair = CertificateFiles(NAMES, options.tls_cert or "", options.tls_key, options.tls_key_password)
        authorities = () if options.tls_client_ca is None else (options.tls_client_ca,)
        self._turn = threading.Lock()
        self._files = WatchedFiles([*self._pair.paths, *authorities])
        self._watching = SupervisedTask("watching TLS files", self._watch, clock=SystemClock(), log=log, draw=random)
        self.handshake_s = float(options.tls_handshake_timeout)
        self.context = CurrentContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.current = self._read()

    def _read(self) -> ssl.SSLContext:
        """Return the settings that the files give now. Raises ConfigurationError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = VERSIONS[self._options.tls_min_version]
        context.set_alpn_protocols(["http/1.1"])
        context.options |= ssl.OP_NO_RENEGOTIATION
        self._pair.load(context)
        if self._options.tls_client_ca is not None:
            load_authorities(context, CLIENT_CA, self._options.tls_client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    @property
    def restarts(self) -> int:
        """How many faults the looking at files has survived."""
        return self._watching.restarts

    def reload(self) -> bool:
        """Read the files anew, and return whether they can be used; where not, that is logged and nothing changes."""
        self._files.accept()
        return self._renew()

    def _renew(self) -> bool:
        """Read the files; in a thread or not, but one reader after the other, so that what was read last is what holds."""
        with self._turn:
            try:
                self.context.current = self._read()
            except ConfigurationError as error:
                self._log.error("the new TLS files are refused", error=error)
                return False
        self._log.info("TLS files read anew", certificate=self._pair.cert)
        return True

    async def __aenter__(self) -> Self:
        """Begin to look at the files."""
        if self._look_s:
            self._watching.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """End."""
        await self._watching.stop()

    async def _watch(self) -> None:
        """Read the files anew whenever they have changed."""
        while True:
            await asyncio.sleep(self._look_s)
            if await asyncio.to_thread(self._files.detect_change):
                await asyncio.to_thread(self._renew)


def make_tls(options: Options, log: Logger, look_s: float = LOOK_S) -> Tls | None:
    """Return the TLS that the options ask for, None where they ask for none. Raises ConfigurationError."""
    return None if options.tls_cert is None else Tls(options, log, look_s)
