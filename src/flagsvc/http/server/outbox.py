"""Answers on their way out: those of one turn of the loop are sent together. Compiled.

Waking a caller is a large part of what a request costs. One that is woken up by several answers is woken up once; so answers wait
for those that the same turn of the loop still makes, but never for long: a fixed number of them, and of bytes, is sent at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

TOGETHER: Final = 32
"""Answers that wait for one another at most."""

TOGETHER_BYTES: Final = 131_072
"""Bytes of answers that wait for one another at most."""


class Sender:
    """What has something to send."""

    def send(self) -> None:
        """Send what is ready."""


class Outbox:
    """Those who have an answer ready that is not sent yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: Final = loop
        self.senders: list[Sender] = []
        self.size: i64 = 0
        self.called: bool = False
        self.callback: Callable[[], None] = self.turn_ends

    def post(self, sender: Sender, size: i64) -> None:
        """Have `sender` send when this turn of the loop ends, or before; it has `size` bytes more than it had."""
        self.senders.append(sender)
        self.size += size
        if self.size >= TOGETHER_BYTES or len(self.senders) >= TOGETHER:
            self.send()
        elif not self.called:
            self.called = True
            self.loop.call_soon(self.callback)

    def send(self) -> None:
        """Have everybody send."""
        senders = self.senders
        self.senders = []
        self.size = 0
        for sender in senders:
            sender.send()

    def turn_ends(self) -> None:
        """Have everybody send what this turn of the loop made ready."""
        self.called = False
        self.send()
