"""One end of a socket pair: messages in their order, and what closes it."""

from __future__ import annotations

import asyncio
import socket

from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.channel import Channel, connected
from support.aio import asynchronous


@asynchronous
async def test_large_bodies() -> None:
    """Megabytes come whole, and what was sent is there before the end is."""
    got: list[tuple[say.Down, bytes]] = []
    here, there = socket.socketpair()
    sender = Channel(say.upward, lambda message, body: None)
    receiver = Channel(say.downward, lambda message, body: got.append((message, body)))
    await connected(here, sender)
    await connected(there, receiver)
    body = bytes(range(256)) * 20_000
    for number in range(3):
        sender.send(say.Prepare(number), body)
    await sender.flush()
    await receiver.closed.wait()
    assert got == [(say.Prepare(number), body) for number in range(3)]


@asynchronous
async def test_what_cannot_be_read_closes_it() -> None:
    """A message that the other end would not send ends the channel: there is somebody else."""
    here, there = socket.socketpair()
    channel = Channel(say.downward, lambda message, body: None)
    await connected(here, channel)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    there.sendall(b"".join(say.packed(say.Serving())))
    await channel.closed.wait()
    there.close()


@asynchronous
async def test_an_end_that_is_gone() -> None:
    """Sending to nobody does nothing, and closing twice neither."""
    channel = Channel(say.downward, lambda message, body: None)
    channel.send(say.Serving())
    channel.close()
    here, there = socket.socketpair()
    await connected(here, channel)
    there.close()
    await channel.closed.wait()
    channel.send(say.Serving())
    channel.close()
