"""What a worker's process is given at its start: how it is started, and the options in a form that another process can have."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flagsvc.core.errors import ConfigurationError
from flagsvc.process.shutdown import HANGUP, SIGNALS
from flagsvc.settings.base import rows_of
from flagsvc.settings.options import OPTIONS, ProxyOptions
from flagsvc.settings.rows.storage import Storage

HELD_BACK = (*SIGNALS, HANGUP)
"""The signals that a worker does not see before it is ready for them."""
UPSTREAM = ("upstream_ca", "upstream_cert", "upstream_key", "upstream_key_password")
PARENTS = frozenset({"workers", "worker_timeout", *UPSTREAM, *(option.field for option in rows_of(Storage))})
"""Options that mean nothing to a worker."""


def portable(options: ProxyOptions) -> dict[str, Any]:
    """Return the options by field, as `ProxyOptions` takes them, without what only the parent needs.

    Raises ConfigurationError where they hold objects made in code: no other process can have those.
    """
    values = {option.field: getattr(options, option.field) for option in OPTIONS if not option.deprecated}
    given = {name: value for name, value in values.items() if value is not None and name not in PARENTS}
    wrong = [name for name, value in given.items() if not is_plain(value)]
    if wrong:
        raise ConfigurationError(
            [
                f"{name}: it is an object made in code, which cannot be given to {options.workers} workers"
                for name in wrong
            ]
        )
    return given


def is_plain(value: object) -> bool:
    """Return whether a value is made of texts, numbers and lists of them."""
    return all(map(is_plain, value)) if isinstance(value, tuple) else isinstance(value, str | int | float)


def start_worker(sockets: Iterable[socket.socket], end: socket.socket) -> subprocess.Popen[bytes]:
    """Start a worker with its end of a socket pair and all listening sockets. Raises OSError.

    It is this Python with this search path; options come over the socket pair, so that no secret is in its arguments. It does not
    see a signal before it is ready for it.
    """
    descriptors = [end.fileno(), *(each.fileno() for each in sockets)]
    with held_back(HELD_BACK):
        return subprocess.Popen(  # noqa: S603 - the arguments are our own
            [sys.executable, "-P", "-m", "flagsvc.process.worker", str(end.fileno())],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )


@contextmanager
def held_back(signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Let signals wait; a process that is started meanwhile begins so."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
