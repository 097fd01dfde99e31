"""Probes a program on this machine, over TCP or a Unix socket, with or without TLS. Imports are as few as possible."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, NamedTuple

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.network import socket_path, url_at

if TYPE_CHECKING:
    from flagsvc.core.certificates import CertificateFiles


class ProbeTarget(NamedTuple):
    """The address of a program. `host` is a name, an IP address, or `unix:/path`, which ignores `port`.

    `tls` means that it speaks TLS; `own` is the client certificate, if callers need one.
    """

    host: str
    port: int
    path: str
    tls: bool = False
    own: CertificateFiles | None = None

    @property
    def url(self) -> str:
        """The address for messages."""
        return url_at(self.host, self.port, self.path, tls=self.tls)


def probe_status(place: ProbeTarget, timeout: float) -> int:
    """Return the status of a GET; each step of it takes at most `timeout` seconds. Raises like http.client."""
    from http.client import HTTPConnection

    with contextlib.closing(open_connection(place, timeout)) as connected:
        connection = HTTPConnection("localhost", timeout=timeout)
        connection.sock = connected
        connection.request("GET", place.path, headers={"Connection": "close"})
        return connection.getresponse().status


def open_connection(place: ProbeTarget, timeout: float) -> socket.socket:
    """Open a connection. Raises OSError."""
    path = socket_path(place.host)
    with contextlib.ExitStack() as stack:
        if path is not None:
            plain = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            plain.settimeout(timeout)
            plain.connect(path)
        else:
            plain = stack.enter_context(socket.create_connection((place.host, place.port), timeout))
        connected = start_tls(plain, place) if place.tls else plain
        stack.pop_all()
        return connected


def start_tls(plain: socket.socket, place: ProbeTarget) -> socket.socket:
    """Start TLS on a connection. The probe sends no secret, so it accepts any certificate. Raises OSError."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if place.own is not None:
        with contextlib.suppress(ConfigurationError):  # then the probe tries without a client certificate
            place.own.load(context)
    return context.wrap_socket(plain)
