"""How a process ends: it fails its readiness first, goes on answering for a while, and only then takes no more connections.

The time in between is for whoever sends callers here, a load balancer or a cluster's service, to notice and to send them elsewhere.
Signals have plain effects on these objects; loops look at them ten times a second.
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
"""The signals to end."""
HANGUP = signal.SIGHUP
"""The signal to read files again."""
GRACE_S = 10
"""Seconds that answers under way get to finish when the process is asked to end."""
TURNS = 3
"""Turns of the loop after which a server has closed its sockets."""


class ShutdownGrace:
    """The time between being told to end and ending. `hurried` cuts it short.

    That is what a second signal does, and SIGINT, which comes from a person at a terminal.
    """

    def __init__(self, seconds: float, drain: Callable[[], None], print_notice: NoticePrinter | None = None) -> None:
        """Take how long it is, and what tells callers that it has begun; that is done once, also where it is no time at all.

        `print_notice` prints what happens. A worker has none, because its parent prints for all.
        """
        self.hurried = False
        self._told = False
        self._seconds = seconds
        self._drain = drain
        self._print_notice = print_notice
        self._until: float | None = None

    def tell(self, number: int) -> None:
        """Take a signal to end."""
        self.hurried = self.hurried or self._told or number == signal.SIGINT
        self._told = True

    def over(self) -> bool:
        """Return whether it is over; asked for the first time it begins."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
            self._drain()
            if self._print_notice is not None:
                self._print_notice(stopping(0 if self.hurried else self._seconds))
        return self.hurried or now >= self._until


def stopping(seconds: float) -> Notice:
    """Return what to print when the end begins: how long new requests are answered, and those under way waited for."""
    more = f"answers new requests for {seconds:g} s more (a second signal skips that), then " if seconds else ""
    return Notice(f"flagsvc stopping: {more}waits up to {GRACE_S} s for answers under way")


class Stoppable(Protocol):
    """What ends when it is told to, and reads files again when it is told to."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to end."""

    def handle_hangup(self) -> None:
        """Take the signal to read files again."""


@contextlib.contextmanager
def stopped_by_signals(server: Stoppable) -> Iterator[None]:
    """Let signals end the server, or have it read files again, and nothing else; afterwards the former handlers are back.

    A terminal that goes away sends SIGHUP as well, and ends what was started from it.
    """
    attached = on_terminal()

    def hang_up(number: int, frame: FrameType | None) -> None:
        if attached and not on_terminal():
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


async def close_doors(servers: Sequence[asyncio.Server], sockets: Sequence[socket.socket]) -> list[socket.socket]:
    """Have servers and sockets listen no longer; return the connections that were waiting there, which nobody else will take.

    The system has a queue for each listening socket, and resets what is in it when the last descriptor of the socket is closed. So
    the last is one of ours, and it is emptied just before.
    """
    doors = [socket.socket(fileno=os.dup(each.fileno())) for server in servers for each in server.sockets]
    for server in servers:
        server.close()
    for each in sockets:
        each.close()
    for _ in range(TURNS):
        await asyncio.sleep(0)
    return [waiting for door in doors for waiting in emptied(door)]


def emptied(door: socket.socket) -> list[socket.socket]:
    """Close a listening socket, and return the connections that were waiting."""
    found: list[socket.socket] = []
    with door, contextlib.suppress(OSError):
        door.setblocking(False)
        while True:
            found.append(door.accept()[0])
            found[-1].setblocking(False)
    return found


def on_terminal() -> bool:
    """Return whether standard input is a terminal that is there."""
    return os.isatty(0)
