"""The storage providers on a server, of configurations and of usage that waits to be sent: what they do beyond their contracts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import MAX_RECORDS
from flagsvc.proxy.redis import Access, Client, RedisRecordStore, RedisStore
from flagsvc.settings.storage import RedisAddress
from support.redises import RedisServer, redis_server


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Run a Redis server."""
    with redis_server() as running:
        yield running


KEY = "0123abc"


@pytest.fixture(autouse=True)
def _empty(server: RedisServer) -> None:
    server.ask("FLUSHALL")


@asynccontextmanager
async def store(server: RedisServer, prefix: str = "test") -> AsyncIterator[RedisStore]:
    """Give a store until the block ends."""
    connection = client(server)
    try:
        yield RedisStore(connection, prefix)
    finally:
        await connection.aclose()


async def test_where_it_is_stored(server: RedisServer) -> None:
    """The key begins with the prefix, so that one server has room for several environments."""
    async with store(server, "one") as first, store(server, "other") as second:
        await first.set("key", b"data")
        assert server.names() == ["one:store:key"]
        assert await second.get("key") is None
        await first.delete("key")
        assert await first.get("key") is None and server.names() == []


@pytest.mark.parametrize("cut", [0, 1, 20, 80, -1])
async def test_what_is_not_whole_is_refused(cut: int, server: RedisServer) -> None:
    """A cut-off value is refused, at every length."""
    async with store(server) as kept:
        await kept.set("key", b"data")
        server.ask("SET", kept.name("key"), server.ask("GET", kept.name("key"))[:cut])
        with pytest.raises(StoreError, match="is not whole, or not flagsvc's"):
            await kept.get("key")


async def test_something_else_under_the_name(server: RedisServer) -> None:
    """A list where a text is expected is an ordinary error, and the next write replaces it."""
    async with store(server) as kept:
        server.ask("DEL", kept.name("key"))
        server.ask("RPUSH", kept.name("key"), "somebody's")
        with pytest.raises(StoreError):
            await kept.get("key")
        await kept.set("key", b"data")
        assert await kept.get("key") == b"data"


async def test_what_is_stored_is_not_written_again(server: RedisServer) -> None:
    """Replicas that accept the same configuration write it once. Each of them writes another configuration."""
    async with store(server, "twice") as first, store(server, "twice") as second:
        await first.set("key", b"data")
        writes = server.ask("INFO", "commandstats")["cmdstat_set"]["calls"]
        await second.set("key", b"data")
        assert server.ask("INFO", "commandstats")["cmdstat_set"]["calls"] == writes
        await second.set("key", b"other")
        assert await first.get("key") == b"other"


async def test_what_a_server_has_lost(server: RedisServer) -> None:
    """A server that has restarted empty has lost it; so has a server where something else stands under the name."""
    async with store(server, "lost") as kept:
        assert await kept.is_lost("key")
        await kept.set("key", b"data")
        assert not await kept.is_lost("key")
        server.ask("SET", kept.name("key"), "somebody's")
        assert await kept.is_lost("key")


def client(server: RedisServer) -> Client:
    """Return a client of the server."""
    return Client(Access(RedisAddress("127.0.0.1", server.port)))


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
