"""The HTTP client of the commands. It reads NO_PROXY like the proxy, follows no redirects, and bounds time and size of an answer.

Import this module only where a request is sent: it imports asyncio and ssl.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Self

from flagsvc.core.certificates import CertificateFiles
from flagsvc.core.errors import ConfigurationError, UnreachableError, UpstreamError
from flagsvc.core.files import LARGEST_DOCUMENT
from flagsvc.core.version import VERSION
from flagsvc.http.client.addresses import shown, web_parts
from flagsvc.http.client.answers import Answer, Limits
from flagsvc.http.client.outbound import Outbound
from flagsvc.http.client.transport import Header, Transport
from flagsvc.http.client.trust import OWN, Trust
from flagsvc.settings.load import resolve

CONNECTION_OPTIONS = (
    *("httpProxy", "httpsProxy", "noProxy", "httpOptions.rejectUnauthorized"),
    *("upstreamCa", "upstreamCert", "upstreamKey", "upstreamKeyPassword"),
)
"""The proxy's options for a connection to a flag server; here only their environment variables apply."""
COMMON_HEADERS: tuple[Header, ...] = (
    ("accept", b"application/json"),
    ("accept-encoding", b"gzip"),
    ("user-agent", f"flagsvc/{VERSION}".encode()),
)
MOST_STEPS = 20
"""How many times longer than one step a whole request may take."""


def read_connection(
    environ: Mapping[str, str], *, insecure: bool = False, more_authorities: Sequence[tuple[str, str]] = ()
) -> tuple[Outbound, Trust]:
    """Return the outbound proxies and the trust settings of the environment. Raises ConfigurationError."""
    resolved = resolve(environ, None, {})
    wrong = [resolved.problems[name] for name in CONNECTION_OPTIONS if name in resolved.problems]
    if wrong:
        raise ConfigurationError(wrong)
    http, https, exempt, strict, authorities, cert, key, password = (resolved.values[name] for name in CONNECTION_OPTIONS)
    own = None if cert is None else CertificateFiles(OWN, cert, key, password)
    return Outbound(http, https, exempt), Trust(strict and not insecure, authorities, own, tuple(more_authorities))


def explain_failure(error: UpstreamError) -> str:
    """Return the message about a request without a usable answer."""
    return f"cannot reach {error}" if error.kind == "network" else str(error)


class Client:
    """Requests to one server, one after the other. A thread watches the connections, so that no ended connection is used."""

    def __init__(self, url: str, outbound: Outbound, trust: Trust, step_s: float) -> None:
        """Take an address of the server and the seconds of one step. Opens no connection yet.

        Raises UnreachableError for an invalid host, and ConfigurationError for a file of `trust`.
        """
        parts = web_parts(url)
        if parts is None:
            raise UnreachableError("network", f"`{shown(url)}`: that is not an http or https URL")
        if parts.scheme == "https":
            trust.check()
        limits = Limits(step_s, MOST_STEPS * step_s, LARGEST_DOCUMENT)
        self._transport = Transport(shown(url), proxy=outbound.proxy_for(url), trust=trust, limits=limits)
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="flagsvc client", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def send(self, method: str, url: str, headers: Sequence[Header] = (), content: bytes | None = None) -> Answer:
        """Send a request and return its answer, of any status. Raises UpstreamError: UnreachableError if nothing was sent."""
        if self._loop.is_closed():
            raise RuntimeError("the client is closed")
        sending = self._transport.send(method, url, [*COMMON_HEADERS, *headers], content, whole=True)
        return asyncio.run_coroutine_threadsafe(sending, self._loop).result()

    def close(self) -> None:
        """Close the connections. A request under way is given up."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._watch())

    async def _watch(self) -> None:
        await self._ended.wait()
        await self._transport.aclose()
