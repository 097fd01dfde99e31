"""Report by exit code whether the proxy of this configuration is ready: 0 if it is, 1 if it is not.

With --server it asks the flag server. With --any it asks both, so the image has one health check whichever program runs. It is made
for container probes: it asks the program on this machine, and needs only the options that say where that program listens.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from flagsvc.cli.parser import add_config_argument, parse_seconds
from flagsvc.cli.programs import TLS, add_server_argument, add_server_flags, read_flags
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import UNREADABLE, resolve
from flagsvc.settings.network import socket_path, split_address, url_at
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import add_options
from flagsvc.settings.server import resolve_server

if TYPE_CHECKING:
    from flagsvc.core.certificates import CertificateFiles

NEEDED = ("host", "port", "proxyBasePath", "adminAddress", *TLS)
NEEDED_BY_SERVER = ("host", "port", "basePath", "adminAddress", *TLS)
LOOPBACK = {None: "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}  # noqa: S104 - compared with, not bound to
NO_LISTENER = "there is no listener"
PROBE_INTERVAL_S = 0.1
PROBE_TIMEOUT_S = 3.0
"""Seconds that one probe waits for its answer."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add `--wait`, `--server`, `--config` and the flags of the options that say where the program listens."""
    text = "ask again for up to this time until it is ready [default: ask once]"
    parser.add_argument("--wait", metavar="SECONDS", type=partial(parse_seconds, what="from 0", zero=True), default=0.0, help=text)
    add_server_argument(parser, NEEDED_BY_SERVER)
    parser.add_argument("--any", action="store_true", help="ask the proxy and the flag server: a program that is ready is enough")
    add_config_argument(parser)
    add_options(parser, NEEDED)
    add_server_flags(parser, NEEDED_BY_SERVER)


def run(args: Namespace) -> int:
    """Probe until the program is ready or the time is over; print one line, return 0 or 1.

    Raises `ConfigurationError` where the configuration does not say where the program listens.
    """
    targets = _find_targets(args)
    ready, target, answer = _probe_until_ready(args.wait, targets)
    print(f"ready: {target.url}" if ready else f"not ready: {target.url}: {answer}")
    return 0 if ready else 1


def _find_targets(args: Namespace) -> list[ProbeTarget]:
    """Return the addresses to ask. With --any, a program whose options do not say where it listens is left out."""
    flags = read_flags(args)
    if args.server:
        return [_find_server(args.config, flags)]
    found = []
    if args.any:
        with contextlib.suppress(ConfigurationError):
            found.append(_find_proxy(args.config, flags))
        with contextlib.suppress(ConfigurationError):
            found.append(_find_server(args.config, {}))
    return found or [_find_proxy(args.config, flags)]


def _find_proxy(config: str | None, flags: dict[str, str]) -> ProbeTarget:
    """Return the address of the proxy. Raises `ConfigurationError`."""
    return _find_target(resolve(os.environ, config, flags), NEEDED, "proxyBasePath", "/proxy/health")


def _find_server(config: str | None, flags: dict[str, str]) -> ProbeTarget:
    """Return the address of the flag server. Raises `ConfigurationError`."""
    return _find_target(resolve_server(os.environ, config, flags), NEEDED_BY_SERVER, "basePath", "/ready")


def _find_target(resolved: Resolved, needed: Sequence[str], base: str, path: str) -> ProbeTarget:
    """Return the local address of a program. The operators' address comes first, because it needs no certificate."""
    admin = resolved.values["adminAddress"]
    host, port = (resolved.values["host"], resolved.values["port"]) if admin is None else split_address(admin)
    _check(resolved, needed, "port" if admin is None else "adminAddress", host, port)
    own = _read_certificate(resolved) if admin is None else None
    whole = f"{resolved.values[base]}{path}"
    return ProbeTarget(LOOPBACK.get(host, host or ""), port, whole, tls=own is not None, own=own)


def _check(resolved: Resolved, needed: Sequence[str], name: str, host: str | None, port: int) -> None:
    """Raise `ConfigurationError` where the `needed` options, among them the port `name`, do not give an address to probe."""
    problems = [text for option, text in resolved.problems.items() if option in (*needed, UNREADABLE)]
    if not problems and port == 0 and socket_path(host) is None:
        problems = [f"{name} ({resolved.sources[name]}): 0 is any free port, so nothing says which one to ask"]
    if problems:
        raise ConfigurationError(problems)


def _read_certificate(resolved: Resolved) -> CertificateFiles | None:
    """Return the program's certificate, which may also serve as a client certificate; None for plain HTTP."""
    from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames

    cert, key, password = (resolved.values[name] for name in TLS)
    return None if cert is None else CertificateFiles(CertificateOptionNames(*TLS), cert, key, password)


def _probe_until_ready(wait: float, targets: Sequence[ProbeTarget]) -> tuple[bool, ProbeTarget, str]:
    """Return whether a program is ready, which one answered so, and the answer; probe again for up to `wait` seconds.

    Without a ready program this is the last answer of the program that has a listener.
    """
    end = time.monotonic() + wait
    while True:
        answers = []
        for target in targets:
            left = end - time.monotonic()
            ready, answer = _probe(target, timeout=min(PROBE_TIMEOUT_S, max(left, 1.0)) if wait else PROBE_TIMEOUT_S)
            answers.append((ready, target, answer))
            if ready:
                return answers[-1]
        if time.monotonic() + PROBE_INTERVAL_S > end:
            return next((each for each in answers if each[2] != NO_LISTENER), answers[0])
        time.sleep(PROBE_INTERVAL_S)


def _probe(target: ProbeTarget, *, timeout: float) -> tuple[bool, str]:
    """Return whether the program answers 200, and its answer as text."""
    from http.client import HTTPException

    try:
        status = probe_status(target, timeout)
    except (OSError, HTTPException) as error:
        return False, _reason(error)
    return status == 200, f"it answers {status}"


def _reason(error: Exception) -> str:
    """Return a short reason why there was no answer."""
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return NO_LISTENER
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if type(error).__module__ == "ssl":
        return "no answer over TLS; where callers need a certificate, give probes an address of their own (adminAddress)"
    return (getattr(error, "strerror", None) or "no HTTP answer").lower()


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
