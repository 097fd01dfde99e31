"""One end of a socket pair: the order of messages, and what closes it. Frames that are cut at any place, and invalid frames."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.proxy.workers.messages import LENGTHS, MAX_HEAD, Deframer, Frame, FrameError, frame


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


async def test_what_cannot_be_read_closes_it() -> None:
    """A message that the other end must not send closes the channel."""
    here, there = socket.socketpair()
    channel = Channel(messages.decode_parent_message, lambda message, body: None)
    await connect_channel(here, channel)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    there.sendall(b"".join(messages.encode_message(messages.Serving())))
    await channel.closed.wait()
    there.close()


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


@given(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=400)), max_size=6), st.lists(st.integers(1, 50), min_size=1))
def test_what_goes_in_comes_out(frames: list[tuple[bytes, bytes]], sizes: list[int]) -> None:
    """Frames come out whole and in order, for any content and however their bytes are cut."""
    data = b"".join(part for head, body in frames for part in frame(head, body))
    deframer, found, start, step = Deframer(), list[Frame](), 0, 0
    while start < len(data):
        size = sizes[step % len(sizes)]
        found += deframer.feed(data[start : start + size])
        start, step = start + size, step + 1
    assert found == [Frame(head, body) for head, body in frames]


def test_a_body_is_not_copied() -> None:
    """It is a separate part."""
    body = b"x" * 1000
    assert frame(b"head", body)[1] is body
    assert len(frame(b"head")) == 1


def test_what_is_no_frame() -> None:
    """A head that is too long is refused immediately."""
    with pytest.raises(FrameError, match=f"a head of {MAX_HEAD + 1} bytes"):
        Deframer().feed(LENGTHS.pack(MAX_HEAD + 1, 0))
