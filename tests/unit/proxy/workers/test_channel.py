"""One end of a socket pair: the order of messages, and what closes it."""

from __future__ import annotations

import asyncio
import socket

from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from support.aio import asynchronous


@asynchronous
async def test_large_bodies() -> None:
    """Megabytes arrive whole, and before the channel is closed."""
    got: list[tuple[messages.ParentMessage, bytes]] = []
    here, there = socket.socketpair()
    sender = Channel(messages.decode_worker_message, lambda message, body: None)
    receiver = Channel(messages.decode_parent_message, lambda message, body: got.append((message, body)))
    await connect_channel(here, sender)
    await connect_channel(there, receiver)
    body = bytes(range(256)) * 20_000
    for number in range(3):
        sender.send(messages.Prepare(number), body)
    await sender.flush()
    await receiver.closed.wait()
    assert got == [(messages.Prepare(number), body) for number in range(3)]


@asynchronous
async def test_what_cannot_be_read_closes_it() -> None:
    """A message that the other end must not send closes the channel."""
    here, there = socket.socketpair()
    channel = Channel(messages.decode_parent_message, lambda message, body: None)
    await connect_channel(here, channel)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    there.sendall(b"".join(messages.encode_message(messages.Serving())))
    await channel.closed.wait()
    there.close()


@asynchronous
async def test_an_end_that_is_gone() -> None:
    """Sending to a closed channel does nothing, and closing twice does nothing."""
    channel = Channel(messages.decode_parent_message, lambda message, body: None)
    channel.send(messages.Serving())
    channel.close()
    here, there = socket.socketpair()
    await connect_channel(here, channel)
    there.close()
    await channel.closed.wait()
    channel.send(messages.Serving())
    channel.close()
