"""One question to a proxy on this machine: over TCP or a Unix socket, over TLS or not. What is not needed is not imported."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, NamedTuple

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.network import socket_path, url_at

if TYPE_CHECKING:
    from flagsvc.core.certificates import CertificateFiles


class ProbeTarget(NamedTuple):
    """Where a proxy answers. `host` is a name, an address or `unix:/path`, whose `port` means nothing.

    `tls` tells that TLS is spoken there, `own` is the certificate to show where callers need one.
    """

    host: str
    port: int
    path: str
    tls: bool = False
    own: CertificateFiles | None = None

    @property
    def url(self) -> str:
        """The address as a message names it."""
        return url_at(self.host, self.port, self.path, tls=self.tls)


def status_of(place: ProbeTarget, timeout: float) -> int:
    """Return the status of the answer to a GET, each step of which takes `timeout` seconds at most. Raises as http.client does."""
    from http.client import HTTPConnection

    with contextlib.closing(opened(place, timeout)) as connected:
        connection = HTTPConnection("localhost", timeout=timeout)
        connection.sock = connected
        connection.request("GET", place.path, headers={"Connection": "close"})
        return connection.getresponse().status


def opened(place: ProbeTarget, timeout: float) -> socket.socket:
    """Return a connection. Raises OSError."""
    path = socket_path(place.host)
    with contextlib.ExitStack() as stack:
        if path is not None:
            plain = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            plain.settimeout(timeout)
            plain.connect(path)
        else:
            plain = stack.enter_context(socket.create_connection((place.host, place.port), timeout))
        connected = secured(plain, place) if place.tls else plain
        stack.pop_all()
        return connected


def secured(plain: socket.socket, place: ProbeTarget) -> socket.socket:
    """Speak TLS over a connection. Nothing secret is said, so any certificate of the proxy's will do. Raises OSError."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if place.own is not None:
        with contextlib.suppress(ConfigurationError):  # then it is tried without
            place.own.load(context)
    return context.wrap_socket(plain)
