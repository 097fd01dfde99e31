"""Tell by exit code whether the proxy of this configuration is ready: 0 when it is, 1 when it is not.

With --server it asks the flag server. Made for container probes: asks the program on this machine, and needs none of the options
but those that say where it listens.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flagsvc.cli.certificates import TLS
from flagsvc.cli.parser import add_config_argument
from flagsvc.cli.probing import ProbeTarget, status_of
from flagsvc.cli.programs import add_server_argument, add_server_flags, flags_of
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import UNREADABLE, Resolved, resolve
from flagsvc.settings.network import socket_path, split_address
from flagsvc.settings.render import add_options
from flagsvc.settings.server import resolve_server

if TYPE_CHECKING:
    from flagsvc.core.certificates import CertificateFiles

NEEDED = ("host", "port", "proxyBasePath", "adminAddress", *TLS)
NEEDED_BY_SERVER = ("host", "port", "basePath", *TLS)
LOOPBACK = {None: "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound to
PAUSE_S = 0.1
PATIENCE_S = 3.0
"""How long one question waits for its answer."""


def seconds(text: str) -> float:
    """Return a number of seconds from 0 to a day."""
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 86_400:
        raise ArgumentTypeError("expected a number of seconds from 0 to 86400")
    return number


def add_arguments(parser: ArgumentParser) -> None:
    """Add `--wait`, `--server`, `--config` and the flags of the options that say where the program listens."""
    text = "go on asking for so long until it is ready [default: ask once]"
    parser.add_argument("--wait", metavar="SECONDS", type=seconds, default=0.0, help=text)
    add_server_argument(parser, NEEDED_BY_SERVER)
    add_config_argument(parser)
    add_options(parser, NEEDED)
    add_server_flags(parser, NEEDED_BY_SERVER)


def run(args: Namespace) -> int:
    """Ask until the answer is yes or the time is over; print one line, return 0 or 1.

    Raises `ConfigurationError` where the configuration does not say where the program listens.
    """
    place = _server(args) if args.server else _proxy(args)
    ready, answer = _ask_for(args.wait, place)
    print(f"ready: {place.url}" if ready else f"not ready: {place.url}: {answer}")
    return 0 if ready else 1


def _proxy(args: Namespace) -> ProbeTarget:
    """Return what to ask: the operators' own address where there is one, for it asks for no certificate, else the callers'."""
    resolved = resolve(os.environ, args.config, flags_of(args))
    admin = resolved.values["adminAddress"]
    host, port = (resolved.values["host"], resolved.values["port"]) if admin is None else split_address(admin)
    _check(resolved, NEEDED, "port" if admin is None else "adminAddress", host, port)
    path = f"{resolved.values['proxyBasePath']}/proxy/health"
    return _place(host, port, path, _own(resolved) if admin is None else None)


def _server(args: Namespace) -> ProbeTarget:
    """Return what to ask of the flag server."""
    resolved = resolve_server(os.environ, args.config, flags_of(args))
    host, port = resolved.values["host"], resolved.values["port"]
    _check(resolved, NEEDED_BY_SERVER, "port", host, port)
    return _place(host, port, f"{resolved.values['basePath']}/ready", _own(resolved))


def _check(resolved: Resolved, needed: Sequence[str], name: str, host: str | None, port: int) -> None:
    """Raise `ConfigurationError` where the options of `needed`, of which `name` holds the port, do not say where to ask."""
    problems = [text for option, text in resolved.problems.items() if option in (*needed, UNREADABLE)]
    if not problems and port == 0 and socket_path(host) is None:
        problems = [f"{name} ({resolved.sources[name]}): 0 is any free port, so nothing says which one to ask"]
    if problems:
        raise ConfigurationError(problems)


def _place(host: str | None, port: int, path: str, own: CertificateFiles | None) -> ProbeTarget:
    """Return the place on this machine where a program answers that listens on `host`."""
    return ProbeTarget(LOOPBACK.get(host, host or ""), port, path, tls=own is not None, own=own)


def _own(resolved: Resolved) -> CertificateFiles | None:
    """Return the certificate that the program serves with, None where it speaks plain HTTP: it may be one for both sides."""
    from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames

    cert, key, password = (resolved.values[name] for name in TLS)
    return None if cert is None else CertificateFiles(CertificateOptionNames(*TLS), cert, key, password)


def _ask_for(patience: float, target: ProbeTarget) -> tuple[bool, str]:
    """Return whether the program is ready, asking again for `patience` seconds while it is not, and the last answer."""
    end = time.monotonic() + patience
    while True:
        left = end - time.monotonic()
        ready, answer = _ask(target, timeout=min(PATIENCE_S, max(left, 1.0)) if patience else PATIENCE_S)
        if ready or time.monotonic() + PAUSE_S > end:
            return ready, answer
        time.sleep(PAUSE_S)


def _ask(target: ProbeTarget, *, timeout: float) -> tuple[bool, str]:
    """Return whether the program answers 200, and what it answers else."""
    from http.client import HTTPException

    try:
        status = status_of(target, timeout)
    except (OSError, HTTPException) as error:
        return False, _reason(error)
    return status == 200, f"it answers {status}"


def _reason(error: Exception) -> str:
    """Return in a few words why there was no answer."""
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return "nothing listens there"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if type(error).__module__ == "ssl":
        return (
            "no answer over TLS; where callers need a certificate, give probes an address of their own (adminAddress)"
        )
    return (getattr(error, "strerror", None) or "no HTTP answer").lower()
