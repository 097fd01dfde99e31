"""Starts the process of a worker, and turns options into values that can be sent to another process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flagsvc.core.errors import ConfigurationError
from flagsvc.process.shutdown import HANGUP, SIGNALS
from flagsvc.settings.base import rows_of
from flagsvc.settings.kinds import is_blank
from flagsvc.settings.options import OPTIONS, ProxyOptions
from flagsvc.settings.rows.storage import StorageOptions

BLOCKED_SIGNALS = (*SIGNALS, HANGUP)
"""The signals that a worker blocks until it has installed its handlers."""
UPSTREAM_TLS = ("upstream_ca", "upstream_cert", "upstream_key", "upstream_key_password")
PARENT_ONLY = frozenset({"workers", "worker_timeout", *UPSTREAM_TLS, *(option.field for option in rows_of(StorageOptions))})
"""The fields of options that only the parent needs."""


def portable_options(options: ProxyOptions) -> dict[str, Any]:
    """Return the options by field, as `ProxyOptions` takes them, without those that only the parent needs.

    Raises ConfigurationError if they contain objects made in code, which cannot be sent to another process.
    """
    values = {option.field: getattr(options, option.field) for option in OPTIONS if not option.deprecated}
    given = {name: value for name, value in values.items() if value is not None and name not in PARENT_ONLY}
    wrong = [name for name, value in given.items() if not is_plain(value)]
    if wrong:
        raise ConfigurationError(
            [f"{name}: it is an object made in code, which cannot be given to {options.workers} workers" for name in wrong]
        )
    return given


def read_portable(values: Mapping[str, Any]) -> ProxyOptions:
    """Return the options that `portable_options` has turned into these values. They are valid, so no option is required.

    An environment that is being replaced may have no key.
    """
    given = {field: value for field, value in values.items() if not is_blank(value)}
    return ProxyOptions.of(
        {row.name: row.parse(given[row.field]) if row.field in given else row.default_for(os.environ) for row in OPTIONS}
    )


def is_plain(value: object) -> bool:
    """Return whether a value consists of texts, numbers and tuples of them."""
    return all(map(is_plain, value)) if isinstance(value, tuple) else isinstance(value, str | int | float)


def start_worker(sockets: Iterable[socket.socket], end: socket.socket) -> subprocess.Popen[bytes]:
    """Start a worker with its end of a socket pair and all listening sockets. Raises OSError.

    The worker uses the same Python and search path. It gets its options over the socket pair, so that its arguments contain no
    secret. Signals are blocked until the worker has its handlers.
    """
    descriptors = [end.fileno(), *(each.fileno() for each in sockets)]
    with block_signals(BLOCKED_SIGNALS):
        return subprocess.Popen(  # noqa: S603 - the arguments are our own
            [sys.executable, "-P", "-m", "flagsvc.process.worker", str(end.fileno())],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )


@contextmanager
def block_signals(signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Block signals while the block runs. A process that is started meanwhile inherits this."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
