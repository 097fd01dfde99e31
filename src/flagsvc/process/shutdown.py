"""The shutdown of a process: it fails readiness, answers requests for a grace period, and then takes no more connections.

During the grace period a load balancer or a cluster's service notices and sends callers elsewhere. Signal handlers only set
attributes of these objects; loops check them ten times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Protocol

from flagsvc.core.notices import Notice, NoticePrinter

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The signals that end the process."""
HANGUP = signal.SIGHUP
"""The signal to reload files."""
OPEN_REQUESTS_S = 10
"""Seconds that open requests have to finish after the grace period."""
LOOP_TURNS = 3
"""Iterations of the event loop after which a server has closed its sockets."""


class ShutdownGrace:
    """The grace period between the signal to end and the shutdown. `is_cut_short` ends it early.

    A second signal cuts it short, and so does SIGINT, which a person sends from a terminal.
    """

    def __init__(self, seconds: float, drain: Callable[[], None], print_notice: NoticePrinter | None = None) -> None:
        """Take the length, and the function to call when the period starts. It is called once, even if the length is 0.

        `print_notice` prints what happens. A worker has none, because its parent prints for all.
        """
        self.is_cut_short = False
        self._has_signal = False
        self._seconds = seconds
        self._drain = drain
        self._print_notice = print_notice
        self._until: float | None = None

    def receive_signal(self, number: int) -> None:
        """Handle a signal to end."""
        self.is_cut_short = self.is_cut_short or self._has_signal or number == signal.SIGINT
        self._has_signal = True

    def is_over(self) -> bool:
        """Return whether the grace period is over. The first call starts it."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
            self._drain()
            if self._print_notice is not None:
                self._print_notice(stopping_notice(0 if self.is_cut_short else self._seconds))
        return self.is_cut_short or now >= self._until


def stopping_notice(seconds: float) -> Notice:
    """Return the notice of a shutdown: how long new requests are answered, and how long open ones may take."""
    more = f"answers new requests for {seconds:g} s more (a second signal skips that), then " if seconds else ""
    return Notice(f"flagsvc stopping: {more}waits up to {OPEN_REQUESTS_S} s for answers under way")


class Stoppable(Protocol):
    """A server that handles signals."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to end."""

    def handle_hangup(self) -> None:
        """Handle the signal to reload files."""


@contextlib.contextmanager
def handle_signals(server: Stoppable) -> Iterator[None]:
    """Pass signals to the server while the block runs, and restore the former handlers afterwards.

    SIGHUP reloads files. But a terminal that is closed sends SIGHUP too, and then it ends the server.
    """
    attached = has_terminal()

    def hang_up(number: int, frame: FrameType | None) -> None:
        if attached and not has_terminal():
            server.handle_exit(signal.SIGINT, frame)
        else:
            server.handle_hangup()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {**dict.fromkeys(SIGNALS, server.handle_exit), HANGUP: hang_up}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def close_listeners(servers: Sequence[asyncio.Server], sockets: Sequence[socket.socket]) -> list[socket.socket]:
    """Stop listening on servers and sockets. Returns the connections that were waiting in the queues.

    The system has a queue for each listening socket, and resets its connections when the last descriptor of the socket is closed.
    So this function keeps a descriptor of its own, and accepts all waiting connections before it closes that one.
    """
    listeners = [socket.socket(fileno=os.dup(each.fileno())) for server in servers for each in server.sockets]
    for server in servers:
        server.close()
    for each in sockets:
        each.close()
    for _ in range(LOOP_TURNS):
        await asyncio.sleep(0)
    return [waiting for listener in listeners for waiting in accept_waiting(listener)]


def accept_waiting(listener: socket.socket) -> list[socket.socket]:
    """Accept and return the connections that wait at a listening socket, and close the socket."""
    found: list[socket.socket] = []
    with listener, contextlib.suppress(OSError):
        listener.setblocking(False)
        while True:
            found.append(listener.accept()[0])
            found[-1].setblocking(False)
    return found


def has_terminal() -> bool:
    """Return whether standard input is an open terminal."""
    return os.isatty(0)
