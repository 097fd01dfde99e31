"""Tell by exit code whether the proxy of this configuration is ready: 0 when it is, 1 when it is not.

Made for container probes: asks the proxy on this machine, and needs none of the options but where it listens.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from flagsvc.cli.parser import add_config_argument
from flagsvc.errors import ConfigurationError
from flagsvc.settings.load import UNREADABLE, resolve
from flagsvc.settings.render import add_options, given_flags

NEEDED = ("host", "port", "proxyBasePath")
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
    """Add `--wait`, `--config` and the flags of the options that say where the proxy listens."""
    text = "go on asking for so long until it is ready [default: ask once]"
    parser.add_argument("--wait", metavar="SECONDS", type=seconds, default=0.0, help=text)
    add_config_argument(parser)
    add_options(parser, NEEDED)


def run(args: Namespace) -> int:
    """Ask until the answer is yes or the time is over; print one line, return 0 or 1.

    Raises `ConfigurationError` where the configuration does not say where the proxy listens.
    """
    host, port, path = _target(args)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{port}{path}"
    ready, answer = _ask_for(args.wait, (host, port, path))
    print(f"ready: {url}" if ready else f"not ready: {url}: {answer}")
    return 0 if ready else 1


def _target(args: Namespace) -> tuple[str, int, str]:
    """Return the host, the port and the path to ask."""
    resolved = resolve(os.environ, args.config, given_flags(vars(args)))
    problems = [text for name, text in resolved.problems.items() if name in (*NEEDED, UNREADABLE)]
    host, port, base = (resolved.values[name] for name in NEEDED)
    if not problems and port == 0:
        problems = [f"port ({resolved.sources['port']}): 0 is any free port, so nothing says which one to ask"]
    if problems:
        raise ConfigurationError(problems)
    return LOOPBACK.get(host, host), port, f"{base}/proxy/health"


def _ask_for(patience: float, target: tuple[str, int, str]) -> tuple[bool, str]:
    """Return whether the proxy is ready, asking again for `patience` seconds while it is not, and the last answer."""
    end = time.monotonic() + patience
    while True:
        left = end - time.monotonic()
        ready, answer = _ask(target, timeout=min(PATIENCE_S, max(left, 1.0)) if patience else PATIENCE_S)
        if ready or time.monotonic() + PAUSE_S > end:
            return ready, answer
        time.sleep(PAUSE_S)


def _ask(target: tuple[str, int, str], *, timeout: float) -> tuple[bool, str]:
    """Return whether the proxy answers 200, and what it answers else."""
    from http.client import HTTPConnection, HTTPException

    host, port, path = target
    connection = HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return False, _reason(error)
    finally:
        connection.close()
    return status == 200, f"it answers {status}"


def _reason(error: Exception) -> str:
    """Return in a few words why there was no answer."""
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (getattr(error, "strerror", None) or "no HTTP answer").lower()
