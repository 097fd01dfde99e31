"""One connection to the upstream: a large answer is taken piece by piece, and nothing of it gets into the next one."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from typing import Any, cast

import pytest

from flagsvc.http.client.answers import Answer, Body
from flagsvc.http.client.connection import PIECE_BYTES, BrokenError, ClientConnection
from support.aio import asynchronous, until

DOCUMENT = bytes(range(256)) * 1000
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class Wire:
    """A transport that notes whether it is read from, and whether it was closed."""

    def __init__(self) -> None:
        self.reading = True
        self.closed = False
        self.sent = bytearray()
        self.wrote: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        """Record sent bytes."""
        self.sent += data
        self.wrote()

    def is_closing(self) -> bool:
        """Return whether it was closed."""
        return self.closed

    def get_write_buffer_size(self) -> int:
        """Return that nothing waits."""
        return 0

    def pause_reading(self) -> None:
        """Read no more."""
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        """Read on."""
        assert not self.reading
        self.reading = True

    def abort(self) -> None:
        """Close."""
        self.closed = True


def answer(body: bytes, *headers: bytes) -> bytes:
    """Return the bytes of an answer with this body."""
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers, b"", body])


def kept(status: int, coding: str) -> Body | None:
    """Keep every body."""
    return Body(coding, 10_000_000, "here")


def asked() -> tuple[ClientConnection, Wire, Callable[[], asyncio.Task[Answer]]]:
    """Return a connection, its transport, and what asks over it."""
    connection, wire = ClientConnection(), Wire()
    connection.connection_made(cast(Any, wire))
    return connection, wire, lambda: asyncio.ensure_future(connection.ask(REQUEST, kept, 10.0))


async def begun(task: asyncio.Task[Answer]) -> asyncio.Task[Answer]:
    """Let a request go out."""
    await asyncio.sleep(0)
    assert not task.done()
    return task


@pytest.mark.parametrize("packed", [False, True])
@asynchronous
async def test_a_large_answer_comes_in_pieces(packed: bool) -> None:
    """The loop has its turn after every piece, nothing else is read meanwhile, and the body is whole."""
    connection, wire, ask = asked()
    task = await begun(ask())
    body = gzip.compress(DOCUMENT * 3, 0) if packed else DOCUMENT
    sent = answer(body, b"content-encoding: gzip") if packed else answer(body)
    connection.data_received(sent)
    turns = 0
    while not wire.reading:
        turns += 1
        await asyncio.sleep(0)
    assert turns >= len(sent) // PIECE_BYTES
    assert (await task).body == (DOCUMENT * 3 if packed else DOCUMENT)
    assert connection.usable


@asynchronous
async def test_a_large_request_goes_out_in_pieces() -> None:
    """While the server reads on, each piece restarts the time limit. A server that answers early gets no more of it."""
    connection, wire, _ = asked()
    wire.wrote = connection.pause_writing
    task = await begun(asyncio.ensure_future(connection.ask(REQUEST + DOCUMENT, kept, 10.0)))
    exchange = connection._exchange
    assert exchange is not None and len(wire.sent) == PIECE_BYTES
    touched = 0

    def count() -> None:
        nonlocal touched
        touched += 1

    exchange.touched = count
    for _ in range(3):
        connection.resume_writing()
    assert (touched, len(wire.sent)) == (3, 4 * PIECE_BYTES) and DOCUMENT.startswith(wire.sent[len(REQUEST) :])
    connection.data_received(answer(b"enough"))
    assert (await task).body == b"enough" and wire.closed
    connection.resume_writing()
    assert len(wire.sent) == 4 * PIECE_BYTES


@asynchronous
async def test_what_is_read_all_the_same_waits_in_its_order() -> None:
    """A transport may still deliver bytes after a pause. They are parsed in order."""
    connection, wire, ask = asked()
    task = await begun(ask())
    sent = answer(DOCUMENT)
    connection.data_received(sent[:100_000])
    connection.data_received(sent[100_000:])
    assert (await task).body == DOCUMENT
    await until(lambda: wire.reading)
    assert connection.usable


@asynchronous
async def test_an_end_behind_what_waits() -> None:
    """A body that ends with its connection is whole, however much of it was not taken yet."""
    connection, _, ask = asked()
    task = await begun(ask())
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n" + DOCUMENT)
    connection.connection_lost(None)
    assert (await task).body == DOCUMENT


@asynchronous
async def test_an_answer_cut_off_while_it_waits() -> None:
    """An answer that breaks off is an error, as without a wait."""
    connection, _, ask = asked()
    task = await begun(ask())
    connection.data_received(answer(DOCUMENT)[:-1])
    connection.connection_lost(None)
    with pytest.raises(BrokenError, match="the answer ended early"):
        await task


@pytest.mark.parametrize("behind", [1, PIECE_BYTES, 3 * PIECE_BYTES])
@asynchronous
async def test_bytes_behind_an_answer_spoil_the_connection(behind: int) -> None:
    """Unrequested bytes never become the answer to the next request."""
    connection, wire, ask = asked()
    task = await begun(ask())
    connection.data_received(answer(DOCUMENT) + b"x" * behind)
    assert (await task).body == DOCUMENT
    assert not connection.usable
    await until(lambda: wire.closed)
