"""One connection to the upstream: a large answer is taken piece by piece, and nothing of it gets into the next one."""

from __future__ import annotations

import asyncio
import gzip
from unittest.mock import Mock

import pytest

from flagsvc.http.client.answers import Answer, Body, coding_of
from flagsvc.http.client.connection import PIECE_BYTES, BrokenError, ClientConnection
from support.aio import until
from support.frontkit import FakeTransport

DOCUMENT = bytes(range(256)) * 1000
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


def answer(body: bytes, *headers: bytes) -> bytes:
    """Return the bytes of an answer with this body."""
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers, b"", body])


async def asked(request: bytes = REQUEST, takes: int | None = None) -> tuple[ClientConnection, FakeTransport, asyncio.Task[Answer]]:
    """Return a connection over which a request goes out, its transport, and what gets the answer."""
    connection, wire = ClientConnection(), FakeTransport(takes=takes)
    wire.protocol = connection
    connection.connection_made(wire)
    task = asyncio.ensure_future(
        connection.ask(request, lambda status, headers: Body(coding_of(headers), 10_000_000, "here"), 10.0)
    )
    await asyncio.sleep(0)
    assert not task.done()
    return connection, wire, task


@pytest.mark.parametrize("packed", [False, True])
async def test_a_large_answer_comes_in_pieces(packed: bool) -> None:
    """The loop has its turn after every piece, nothing else is read meanwhile, and the body is whole."""
    connection, wire, task = await asked()
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


async def test_a_large_request_goes_out_in_pieces() -> None:
    """While the server reads on, each piece restarts the time limit. A server that answers early gets no more of it."""
    connection, wire, task = await asked(REQUEST + DOCUMENT, takes=0)
    exchange = connection._exchange
    assert exchange is not None and len(wire.data) == PIECE_BYTES
    exchange.touched = touched = Mock()
    for _ in range(3):
        wire.take()
    assert (touched.call_count, len(wire.data)) == (3, 4 * PIECE_BYTES) and DOCUMENT.startswith(wire.data[len(REQUEST) :])
    connection.data_received(answer(b"enough"))
    assert (await task).body == b"enough" and wire.aborted
    wire.take()
    assert len(wire.data) == 4 * PIECE_BYTES


async def test_what_is_read_all_the_same_waits_in_its_order() -> None:
    """A transport may still deliver bytes after a pause. They are parsed in order."""
    connection, wire, task = await asked()
    sent = answer(DOCUMENT)
    connection.data_received(sent[:100_000])
    connection.data_received(sent[100_000:])
    assert (await task).body == DOCUMENT
    await until(lambda: wire.reading)
    assert connection.usable


async def test_an_end_behind_what_waits() -> None:
    """A body that ends with its connection is whole, however much of it was not taken yet."""
    connection, _, task = await asked()
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n" + DOCUMENT)
    connection.connection_lost(None)
    assert (await task).body == DOCUMENT


async def test_an_answer_cut_off_while_it_waits() -> None:
    """An answer that breaks off is an error, as without a wait."""
    connection, _, task = await asked()
    connection.data_received(answer(DOCUMENT)[:-1])
    connection.connection_lost(None)
    with pytest.raises(BrokenError, match="the answer ended early"):
        await task


@pytest.mark.parametrize("behind", [1, PIECE_BYTES, 3 * PIECE_BYTES])
async def test_bytes_behind_an_answer_spoil_the_connection(behind: int) -> None:
    """Unrequested bytes never become the answer to the next request."""
    connection, wire, task = await asked()
    connection.data_received(answer(DOCUMENT) + b"x" * behind)
    assert (await task).body == DOCUMENT
    assert not connection.usable
    await until(lambda: wire.aborted)
