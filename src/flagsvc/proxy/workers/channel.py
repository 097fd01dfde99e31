"""One end of the socket pair between parent and worker: messages in, messages out, and its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from flagsvc.proxy.workers.framing import Deframer, Frame
from flagsvc.proxy.workers.messages import Message, packed

M = TypeVar("M")


class Channel(asyncio.Protocol, Generic[M]):
    """Sends messages, and hands those that come to `take`, in their order. `closed` is set when the other end is gone.

    What cannot be read, or makes `take` raise, closes it: the other end is not what it should be.
    """

    def __init__(self, read: Callable[[bytes], M], take: Callable[[M, bytes], None]) -> None:
        """Take what makes a message of a frame's head, and who gets it with the frame's body."""
        self.closed = asyncio.Event()
        self._read = read
        self._take = take
        self._deframer = Deframer()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        for frame in self._deframer.feed(data):
            self._hand(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._transport = None
        self.closed.set()

    def send(self, message: Message, body: bytes = b"") -> None:
        """Send a message; nothing happens when the other end is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(packed(message, body))

    def close(self) -> None:
        """Close this end once everything is sent."""
        if self._transport is not None:
            self._transport.close()

    async def flush(self) -> None:
        """Close this end, and wait until everything is sent or the other end is gone."""
        self.close()
        await self.closed.wait()

    def _hand(self, frame: Frame) -> None:
        self._take(self._read(frame.head), frame.body)


async def connected(end: socket.socket, channel: Channel[M]) -> None:
    """Let a channel work over one end of a socket pair, in the running loop."""
    await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=end)
