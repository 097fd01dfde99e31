"""One end of the socket pair between parent and worker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from flagsvc.proxy.workers.messages import Deframer, Frame, Message, encode_message

M = TypeVar("M")


class Channel(asyncio.Protocol, Generic[M]):
    """Sends messages, and passes received ones to `on_message` in their order. `closed` is set when the connection has ended.

    A frame that cannot be decoded, or a message that makes `on_message` raise, closes the channel.
    """

    def __init__(self, decode: Callable[[bytes], M], on_message: Callable[[M, bytes], None]) -> None:
        """Take the function that decodes the head of a frame, and the one that gets the message with the frame's body."""
        self.closed = asyncio.Event()
        self._decode = decode
        self._on_message = on_message
        self._deframer = Deframer()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for frame in self._deframer.feed(data):
            self._deliver(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.closed.set()

    def send(self, message: Message, body: bytes = b"") -> None:
        """Send a message. Does nothing if the other end is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(encode_message(message, body))

    def close(self) -> None:
        """Close this end when everything is sent."""
        if self._transport is not None:
            self._transport.close()

    async def flush(self) -> None:
        """Close this end. Returns when all messages are sent, or when the other end is gone."""
        self.close()
        await self.closed.wait()

    def _deliver(self, frame: Frame) -> None:
        self._on_message(self._decode(frame.head), frame.body)


async def connect_channel(end: socket.socket, channel: Channel[M]) -> None:
    """Connect a channel to one end of a socket pair, in the running loop."""
    await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=end)
