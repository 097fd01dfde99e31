"""The storage provider on a server: what it does beyond the contract of every provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.redis import Access, Client, RedisStore
from flagsvc.settings.storage import RedisAddress
from support.aio import asynchronous
from support.redises import RedisServer, redis_server


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Run a Redis server."""
    with redis_server() as running:
        yield running


@asynccontextmanager
async def store(server: RedisServer, prefix: str = "test") -> AsyncIterator[RedisStore]:
    """Give a store until the block ends."""
    client = Client(Access(RedisAddress("127.0.0.1", server.port)))
    try:
        yield RedisStore(client, prefix)
    finally:
        await client.aclose()


@asynchronous
async def test_where_it_is_stored(server: RedisServer) -> None:
    """The key begins with the prefix, so that one server has room for several environments."""
    async with store(server, "one") as first, store(server, "other") as second:
        await first.set("key", b"data")
        assert server.names() == ["one:store:key"]
        assert await second.get("key") is None
        await first.delete("key")
        assert await first.get("key") is None and server.names() == []


@pytest.mark.parametrize("cut", [0, 1, 20, 80, -1])
@asynchronous
async def test_what_is_not_whole_is_refused(cut: int, server: RedisServer) -> None:
    """A cut-off value is refused, at every length."""
    async with store(server) as kept:
        await kept.set("key", b"data")
        server.ask("SET", kept.name("key"), server.ask("GET", kept.name("key"))[:cut])
        with pytest.raises(StoreError, match="is not whole, or not flagsvc's"):
            await kept.get("key")


@asynchronous
async def test_something_else_under_the_name(server: RedisServer) -> None:
    """A list where a text is expected is an ordinary error, and the next write replaces it."""
    async with store(server) as kept:
        server.ask("DEL", kept.name("key"))
        server.ask("RPUSH", kept.name("key"), "somebody's")
        with pytest.raises(StoreError):
            await kept.get("key")
        await kept.set("key", b"data")
        assert await kept.get("key") == b"data"


@asynchronous
async def test_what_is_stored_is_not_written_again(server: RedisServer) -> None:
    """Replicas that accept the same configuration write it once. Each of them writes another configuration."""
    async with store(server, "twice") as first, store(server, "twice") as second:
        await first.set("key", b"data")
        writes = server.ask("INFO", "commandstats")["cmdstat_set"]["calls"]
        await second.set("key", b"data")
        assert server.ask("INFO", "commandstats")["cmdstat_set"]["calls"] == writes
        await second.set("key", b"other")
        assert await first.get("key") == b"other"


@asynchronous
async def test_what_a_server_has_lost(server: RedisServer) -> None:
    """A server that has restarted empty has lost it; so has a server where something else stands under the name."""
    async with store(server, "lost") as kept:
        assert await kept.is_lost("key")
        await kept.set("key", b"data")
        assert not await kept.is_lost("key")
        server.ask("SET", kept.name("key"), "somebody's")
        assert await kept.is_lost("key")
