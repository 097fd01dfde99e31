"""The parent's view of one worker: process, channel, and acknowledged messages."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable, Sequence
from typing import TypeAlias

from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel


class ProcessPulse:
    """The ping state of one process. Elapsed seconds are passed in.

    `has_answered` is False while the process starts, until its first answer. `is_awaiting_answer` tells that it was pinged and has
    not answered, `silent_s` for how many seconds. `is_given_up` tells that it was killed for being silent.
    """

    def __init__(self) -> None:
        self.has_answered = False
        self.is_awaiting_answer = False
        self.is_given_up = False
        self.silent_s = 0.0

    def record_answer(self) -> None:
        self.has_answered, self.is_awaiting_answer, self.silent_s = True, False, 0.0

    def advance(self, seconds: float) -> bool:
        """Add time to the silence if a ping is unanswered, and return False. Otherwise return True: the caller sends a ping."""
        if self.is_awaiting_answer:
            self.silent_s += seconds
            return False
        self.is_awaiting_answer = True
        return True

    def is_overdue(self, timeout_s: float, start_s: float) -> bool:
        """Return whether the process has been silent for too long. Before its first answer it has at least `start_s` seconds."""
        return self.is_awaiting_answer and self.silent_s >= (timeout_s if self.has_answered else max(timeout_s, start_s))


EXIT_TIMEOUT_S = 2.0
"""Seconds that a process may take to end once its channel is closed."""


Child: TypeAlias = subprocess.Popen[bytes]
"""The process of a worker."""


class Conditions:
    """Lets several tasks wait for conditions, which are checked again at each `notify`."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait_for(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until the condition holds, for at most `seconds`; return whether it holds."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    waiting = asyncio.get_running_loop().create_future()
                    self._waiting.append(waiting)
                    await waiting
        except TimeoutError:
            return condition()
        return True


class SlotDocuments:
    """The documents of one environment in one worker's process.

    `sent` are the numbers of the documents that the process got and still keeps. `prepared` is the number of the newest
    document that it has prepared, and `served` the number of the document that it serves.
    """

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.prepared = 0
        self.served = 0


class WorkerSlot:
    """The place of one worker in the pool, whose process may be replaced.

    `is_serving` tells that the worker takes connections. `is_vacant`: its process has ended, and no new one takes
    connections. `last_report` and `last_reload` are the numbers of the last report and of the last environments that it has
    acknowledged. `pulse` tells whether the process answers.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.child: Child | None = None
        self.channel: Channel[messages.WorkerMessage] | None = None
        self.is_serving = False
        self.is_vacant = False
        self._documents: dict[int, SlotDocuments] = {}
        self.last_report = 0
        self.last_reload = 0
        self.pulse = ProcessPulse()

    def open(self, channel: Channel[messages.WorkerMessage]) -> None:
        """Take the connected channel of a new process, which has acknowledged nothing yet."""
        self._documents = {}
        self.last_report = self.last_reload = 0
        self.channel = channel

    def documents(self, environment: int) -> SlotDocuments:
        return self._documents.setdefault(environment, SlotDocuments())

    def forget(self, environment: int) -> None:
        self._documents.pop(environment, None)

    def close(self) -> None:
        self.channel, self.is_serving, self.is_vacant = None, False, True

    def send(self, message: messages.Message, body: bytes = b"") -> None:
        """Send a message. Does nothing if there is no process."""
        if self.channel is not None:
            self.channel.send(message, body)

    def send_valid_tokens(self, digests: Sequence[str]) -> None:
        """Tell it about tokens of callers that are valid, by their digests, if there are any."""
        if digests:
            self.send(messages.ValidTokens(list(digests)))

    def pending_check(self, is_pending: Callable[[WorkerSlot], bool]) -> Callable[[], bool]:
        """Return a function that tells whether the present process is pending. It returns False once that process has ended."""
        channel = self.channel
        return lambda: channel is not None and self.channel is channel and is_pending(self)

    def kill(self) -> None:
        if self.child is not None:
            with contextlib.suppress(OSError):
                self.child.kill()


def wait_for_exit(child: Child) -> int:
    """Return the exit status of a process whose channel is closed. Kills the process if it does not end in time."""
    try:
        return child.wait(EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
