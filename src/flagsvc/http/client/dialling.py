"""Opens connections to the upstream: directly, through an outbound proxy, or through its tunnel; with or without TLS.

HTTP_PROXY and HTTPS_PROXY name the outbound proxies (specification: Options).
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from flagsvc.http.client.addresses import host_of, origin
from flagsvc.http.client.connection import BrokenError, ClientConnection
from flagsvc.http.client.trust import Trust

NEXT_ADDRESS_S = 0.25
"""Seconds after which the next address of a host is tried in parallel (RFC 8305)."""
Refusal = Callable[[str], str]
"""Returns why no connection may go to an IP address; empty if it may."""
FORBIDDEN = "forbidden"
"""The kind of the error for a host without an address to which a connection may go."""
TECHNICAL_CODES = re.compile(r"\[ssl[^][]*\] | \(_ssl\.c:[0-9]+\)")
NOT_TLS = "wrong version number"
"""OpenSSL's message about an answer that is not TLS."""


def no_refusal(address: str) -> str:
    return ""


@dataclass(frozen=True)
class End:
    """One end of a connection: a host in the form of name servers, a port, and the TLS settings if it uses TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def authority(self) -> str:
        """Host and port in the form of a tunnel request."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def certified(self) -> str:
        """The name in the certificate. An address loses its scope, which only this machine knows."""
        return self.host.partition("%")[0]


@dataclass(frozen=True)
class DialRoute:
    """The route to an origin. `credentials` is a Proxy-Authorization value or empty, so the repr leaves it out.

    `refusal` is asked about each address that a connection would go to: with an outbound proxy, those of the proxy.
    """

    origin: End
    proxy: End | None = None
    credentials: bytes = field(default=b"", repr=False)
    refusal: Refusal = no_refusal

    @property
    def forwarded(self) -> bool:
        """Whether an outbound proxy gets each request, which then needs the whole address."""
        return self.proxy is not None and self.origin.tls is None

    async def dial(self) -> ClientConnection:
        """Return a new connection. Raises OSError and BrokenError. The caller limits the time."""
        connection = await connect(self.proxy or self.origin, self.refusal)
        if self.proxy is not None and self.origin.tls is not None:
            try:
                await connection.tunnel(self.origin.authority, self.credentials)
                await connection.start_tls(self.origin.tls, self.origin.certified)
            except BaseException:
                connection.abort()
                raise
        return connection


def route_to(url: str, proxy: str | None, trust: Trust, refusal: Refusal = no_refusal) -> DialRoute:
    """Return the route to the origin of `url`, through the outbound proxy of that URL if there is one.

    Raises ValueError (UnicodeError for an invalid host), and ConfigurationError for a file of `trust`.
    """
    there = end_of(urlsplit(url), trust)
    if proxy is None:
        return DialRoute(there, refusal=refusal)
    parts = urlsplit(proxy)
    return DialRoute(there, end_of(parts, trust.nameless), basic(parts), refusal)


def end_of(parts: SplitResult, trust: Trust) -> End:
    """Return the end of a connection that a URL names. Raises UnicodeError for an invalid host, and ConfigurationError."""
    scheme, _, port = origin(parts)
    return End(host_of(parts), port, trust.context() if scheme == "https" else None)


def basic(parts: SplitResult) -> bytes:
    """Return the Basic credentials from user and password of a URL; empty if it has neither."""
    if not parts.username and not parts.password:
        return b""
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return b"Basic " + base64.b64encode(pair.encode("utf-8", "replace"))


async def connect(end: End, refusal: Refusal = no_refusal) -> ClientConnection:
    """Return a connection to one of the addresses of a host: the first that answers. The addresses are tried a moment apart.

    Refused addresses are left out. Raises BrokenError (FORBIDDEN) if all are refused.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(end.host, end.port, type=socket.SOCK_STREAM)
    refused = {address: refusal(address) for address in (address_of(entry[4]) for entry in found)}
    addresses = alternating([address for address, reason in refused.items() if not reason])
    if refused and not addresses:
        raise BrokenError(next(iter(refused.values())), FORBIDDEN)
    if len(addresses) == 1:
        return await attempt(end, addresses[0])
    return await first_of(end, addresses)


def address_of(found: Sequence[object]) -> str:
    """Return the address of a socket address, with the scope of a link-local IPv6 address, which is necessary."""
    scope = found[3] if len(found) > 3 else 0
    return f"{found[0]}%{scope}" if scope else str(found[0])


def alternating(addresses: Sequence[str]) -> list[str]:
    """Return addresses of the two families in turn, beginning with the family of the first one."""
    first = ":" in addresses[0] if addresses else False
    same = [address for address in addresses if (":" in address) == first]
    other = [address for address in addresses if (":" in address) != first]
    ranked = [(2 * at, address) for at, address in enumerate(same)]
    ranked += [(2 * at + 1, address) for at, address in enumerate(other)]
    return [address for _, address in sorted(ranked)]


async def attempt(end: End, address: str) -> ClientConnection:
    """Connect to one address. The certificate must have the name of the host."""
    name = end.certified if end.tls is not None else None
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(ClientConnection, address, end.port, ssl=end.tls, server_hostname=name)
    return connection


async def first_of(end: End, addresses: Sequence[str]) -> ClientConnection:
    """Return the first connection that opens, and give up the others. Raises the error of the first failure."""
    waiting, begun = list(addresses), set[asyncio.Task[ClientConnection]]()
    failures: list[BaseException] = []
    try:
        while waiting or begun:
            if waiting:
                begun.add(asyncio.create_task(attempt(end, waiting.pop(0))))
            pause = NEXT_ADDRESS_S if waiting else None
            done, _ = await asyncio.wait(begun, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                begun.discard(task)
                failure = task.exception()
                if failure is None:
                    return task.result()
                failures.append(failure)
    finally:
        for task in begun:
            task.add_done_callback(give_up)
            task.cancel()
    raise failures[0] if failures else BrokenError("the host has no address")


def give_up(task: asyncio.Task[ClientConnection]) -> None:
    """Close the connection of an attempt that is no longer needed."""
    if not task.cancelled() and task.exception() is None:
        task.result().abort()


def in_words(error: OSError) -> str:
    """Return why a connection failed, in lower case, without an address and without codes that only help programmers."""
    if isinstance(error, ssl.SSLError):
        return TECHNICAL_CODES.sub("", str(error).lower()).replace(NOT_TLS, f"{NOT_TLS}; it may speak plain HTTP there")
    known = error.errno is not None and error.errno > 0
    words = os.strerror(error.errno) if known and error.errno is not None else error.strerror or type(error).__name__
    return words.lower()
