"""Usage metrics that wait on a Redis or Valkey server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from aio import asynchronous
from flagsvc.errors import StoreError
from flagsvc.fleet.client import Access, Client
from flagsvc.fleet.shelf import ServerShelf
from flagsvc.repository.stores.shelves import MOST_RECORDS
from flagsvc.settings.fleet import Server
from redises import RedisServer, redis_server

KEY = "0123abc"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server for all tests here."""
    with redis_server() as started:
        yield started


@pytest.fixture(autouse=True)
def _empty(server: RedisServer) -> None:
    server.ask("FLUSHALL")


def client(server: RedisServer) -> Client:
    """Return a client of it."""
    return Client(Access(Server("127.0.0.1", server.port)))


@asynchronous
async def test_a_record_comes_back_whole(server: RedisServer) -> None:
    """Any bytes, also many; what is put later replaces what was there before; and it is gone when it is removed."""
    connection = client(server)
    shelf = ServerShelf(connection, "prefix", KEY)
    assert (await shelf.names(), await shelf.get("0a"), shelf.shared) == ([], None, True)
    for data in (b"one", b"", bytes(range(256)) * 4096, b"\n\n{}"):
        await shelf.put("0a", data)
        assert await shelf.get("0a") == data
    assert server.ask("KEYS", "*") == [f"prefix:usage:{KEY}".encode()] and await shelf.names() == ["0a"]
    assert await shelf.remove("0a") and not await shelf.remove("0a")
    assert (await shelf.names(), server.ask("KEYS", "*")) == ([], [])
    await connection.aclose()


@asynchronous
async def test_one_alone_removes_a_record(server: RedisServer) -> None:
    """Of several at once, each with a connection of its own."""
    clients = [client(server) for _ in range(8)]
    shelves = [ServerShelf(each, "prefix", KEY) for each in clients]
    await ServerShelf(clients[0], "prefix", "other").put("0a", b"of others")
    for number in range(10):
        await shelves[0].put(str(number), b"data")
        told = await asyncio.gather(*(shelf.remove(str(number)) for shelf in shelves))
        assert sorted(told) == [False] * 7 + [True]
    assert await ServerShelf(clients[1], "prefix", "other").names() == ["0a"]
    for each in clients:
        await each.aclose()


@asynchronous
async def test_a_damaged_record_is_an_error(server: RedisServer) -> None:
    """And somebody else's."""
    connection = client(server)
    shelf = ServerShelf(connection, "prefix", KEY)
    server.ask("HSET", f"prefix:usage:{KEY}", "0a", "something else")
    with pytest.raises(StoreError, match="not whole"):
        await shelf.get("0a")
    server.ask("DEL", f"prefix:usage:{KEY}")
    server.ask("SET", f"prefix:usage:{KEY}", "no hash at all")
    for work in (shelf.names(), shelf.get("0a"), shelf.put("0a", b"x"), shelf.remove("0a")):
        with pytest.raises(StoreError):
            await work
    await connection.aclose()


@asynchronous
async def test_records_are_bounded(server: RedisServer) -> None:
    """Who has a record may go on writing it."""
    connection = client(server)
    shelf = ServerShelf(connection, "prefix", KEY)
    for number in range(MOST_RECORDS):
        await shelf.put(str(number), b"x")
    with pytest.raises(StoreError, match="already"):
        await shelf.put("more", b"x")
    await shelf.put("0", b"y")
    assert await shelf.get("0") == b"y" and len(await shelf.names()) == MOST_RECORDS
    await connection.aclose()
