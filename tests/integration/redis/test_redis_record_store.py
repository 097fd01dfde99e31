"""Usage metrics that wait to be sent, stored on a Redis or Valkey server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import MAX_RECORDS
from flagsvc.proxy.redis import Access, Client, RedisRecordStore
from flagsvc.settings.storage import RedisAddress
from support.aio import asynchronous
from support.redises import RedisServer, redis_server

KEY = "0123abc"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Run one server for all tests here."""
    with redis_server() as started:
        yield started


@pytest.fixture(autouse=True)
def _empty(server: RedisServer) -> None:
    server.ask("FLUSHALL")


def client(server: RedisServer) -> Client:
    """Return a client of the server."""
    return Client(Access(RedisAddress("127.0.0.1", server.port)))


@asynchronous
async def test_a_record_comes_back_whole(server: RedisServer) -> None:
    """A record holds any bytes, also many; a later write replaces it; a removed record is gone."""
    connection = client(server)
    record_store = RedisRecordStore(connection, "prefix", KEY)
    assert (await record_store.names(), await record_store.get("0a"), record_store.shared) == ([], None, True)
    for data in (b"one", b"", bytes(range(256)) * 4096, b"\n\n{}"):
        await record_store.put("0a", data)
        assert await record_store.get("0a") == data
    assert server.ask("KEYS", "*") == [f"prefix:usage:{KEY}".encode()] and await record_store.names() == ["0a"]
    assert await record_store.remove("0a") and not await record_store.remove("0a")
    assert (await record_store.names(), server.ask("KEYS", "*")) == ([], [])
    await connection.aclose()


@asynchronous
async def test_one_alone_removes_a_record(server: RedisServer) -> None:
    """Of several removals at once, each over its own connection, exactly one succeeds."""
    clients = [client(server) for _ in range(8)]
    record_stores = [RedisRecordStore(each, "prefix", KEY) for each in clients]
    await RedisRecordStore(clients[0], "prefix", "other").put("0a", b"of others")
    for number in range(10):
        await record_stores[0].put(str(number), b"data")
        told = await asyncio.gather(*(record_store.remove(str(number)) for record_store in record_stores))
        assert sorted(told) == [False] * 7 + [True]
    assert await RedisRecordStore(clients[1], "prefix", "other").names() == ["0a"]
    for each in clients:
        await each.aclose()


@asynchronous
async def test_a_damaged_record_is_an_error(server: RedisServer) -> None:
    """A damaged record is an error, and so is a value that another program wrote."""
    connection = client(server)
    record_store = RedisRecordStore(connection, "prefix", KEY)
    server.ask("HSET", f"prefix:usage:{KEY}", "0a", "something else")
    with pytest.raises(StoreError, match="not whole"):
        await record_store.get("0a")
    server.ask("DEL", f"prefix:usage:{KEY}")
    server.ask("SET", f"prefix:usage:{KEY}", "no hash at all")
    for work in (record_store.names(), record_store.get("0a"), record_store.put("0a", b"x"), record_store.remove("0a")):
        with pytest.raises(StoreError):
            await work
    await connection.aclose()


@asynchronous
async def test_records_are_bounded(server: RedisServer) -> None:
    """The number of records is limited; a process that has a record may still write it."""
    connection = client(server)
    record_store = RedisRecordStore(connection, "prefix", KEY)
    for number in range(MAX_RECORDS):
        await record_store.put(str(number), b"x")
    with pytest.raises(StoreError, match="already"):
        await record_store.put("more", b"x")
    await record_store.put("0", b"y")
    assert await record_store.get("0") == b"y" and len(await record_store.names()) == MAX_RECORDS
    await connection.aclose()
