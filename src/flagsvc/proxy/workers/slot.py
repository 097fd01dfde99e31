"""The parent's view of one worker: its process, its channel, and how far it has come."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable
from typing import Protocol

from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.channel import Channel
from flagsvc.proxy.workers.pulse import ProcessPulse

REAP_S = 2.0
"""Seconds that a process may take to end once its channel is closed."""


class Child(Protocol):
    """A process (`subprocess.Popen`)."""

    @property
    def pid(self) -> int:
        """Its id."""

    def kill(self) -> None:
        """End it at once."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status when it has ended; raises subprocess.TimeoutExpired."""


class Conditions:
    """Lets several wait for conditions that only change when somebody says so."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def changed(self) -> None:
        """Say that something has changed."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Return True when the condition holds, False when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    waiting = asyncio.get_running_loop().create_future()
                    self._waiting.append(waiting)
                    await waiting
        except TimeoutError:
            return condition()
        return True


class WorkerSlot:
    """One of the workers, whichever process it is at the moment.

    `serving` tells that it takes connections, `fallen` that its process has ended and no other takes its connections yet;
    `given` are the numbers of the documents it was sent and still keeps, `prepared` is that of the newest that is ready,
    `switched` of the one that is served, `reported` of the last report, `reloaded` of the last options it goes on with; `pulse`
    tells whether the process answers.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.child: Child | None = None
        self.channel: Channel[say.Up] | None = None
        self.serving = False
        self.fallen = False
        self.given: list[int] = []
        self.prepared = 0
        self.switched = 0
        self.reported = 0
        self.reloaded = 0
        self.pulse = ProcessPulse()

    def open(self, channel: Channel[say.Up]) -> None:
        """Take the channel to a new process; it is connected."""
        self.given = []
        self.prepared = self.switched = self.reported = self.reloaded = 0
        self.channel = channel

    def shut(self) -> None:
        """Note that the process has ended."""
        self.channel, self.serving, self.fallen = None, False, True

    def tell(self, message: say.Message, body: bytes = b"") -> None:
        """Send a message, if there is a process."""
        if self.channel is not None:
            self.channel.send(message, body)

    def owing(self, owes: Callable[[WorkerSlot], bool]) -> Callable[[], bool]:
        """Return what tells whether the process that sits here now still owes something; one that has ended owes nothing."""
        channel = self.channel
        return lambda: channel is not None and self.channel is channel and owes(self)

    def kill(self) -> None:
        """End the process at once."""
        if self.child is not None:
            with contextlib.suppress(OSError):
                self.child.kill()


def reaped(child: Child) -> int:
    """Return the exit status of a process whose channel is closed; it is killed where it does not end by itself."""
    try:
        return child.wait(REAP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
