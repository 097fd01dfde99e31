"""The contract of every storage provider: ours, and examples of a user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.proxy.configuration.stores import FileStore, NoStore, StorageProvider, read_record, write_record
from flagsvc.proxy.redis import Access, Client, RedisStore
from flagsvc.settings.storage import RedisAddress
from flagsvc.testing import MemoryStore
from support.plain_store import PlainStore
from support.redises import redis_server

PREFIXES = count()


def forwarding() -> Any:
    """Return a user's provider whose plain functions return coroutines of another provider."""
    memory = MemoryStore()
    return SimpleNamespace(get=lambda key: memory.get(key), set=lambda key, data: memory.set(key, data))


class OnServer:
    """The provider on a Redis server, each time with a connection of its own."""

    def __init__(self, port: int, folder: Path) -> None:
        self._port = port
        self._prefix = f"contract-{next(PREFIXES)}"

    async def get(self, key: str) -> bytes | None:
        async with aclosing(Client(Access(RedisAddress("127.0.0.1", self._port)))) as client:
            return await RedisStore(client, self._prefix).get(key)

    async def set(self, key: str, data: bytes) -> None:
        async with aclosing(Client(Access(RedisAddress("127.0.0.1", self._port)))) as client:
            await RedisStore(client, self._prefix).set(key, data)


Make = Callable[[Path], StorageProvider]
STORES: dict[str, Make] = {
    "file": FileStore,
    "memory": lambda _: MemoryStore(),
    "plain": lambda _: PlainStore(),
    "forwarding": lambda _: forwarding(),
}


@pytest.fixture(scope="module")
def redis_port() -> Iterator[int]:
    with redis_server() as server:
        yield server.port


@pytest.fixture(params=[*STORES, "server"])
def make(request: pytest.FixtureRequest) -> Make:
    if request.param == "server":
        return partial(OnServer, request.getfixturevalue("redis_port"))
    return STORES[request.param]


async def test_nothing_stored_is_none(make: Make, tmp_path: Path) -> None:
    """A get returns None before the first set."""
    assert await read_record(make(tmp_path), "key") is None


async def test_the_last_data_come_back_whole(make: Make, tmp_path: Path) -> None:
    """A get returns any bytes of any size; a later set replaces them."""
    store = make(tmp_path)
    for data in (b"one", b"", bytes(range(256)) * 4096, b"\n\n{}"):
        await write_record(store, "key", data)
        assert await read_record(store, "key") == data


async def test_keys_are_apart(make: Make, tmp_path: Path) -> None:
    """A configuration is never returned under another key."""
    store = make(tmp_path)
    await write_record(store, "a" * 40, b"a")
    await write_record(store, "b" * 40, b"b")
    assert [await read_record(store, key * 40) for key in "abc"] == [b"a", b"b", None]


async def test_no_store_takes_everything_and_has_nothing() -> None:
    """The one exception: `none` (behaviour: Further options)."""
    store = NoStore()
    await write_record(store, "key", b"data")
    assert await read_record(store, "key") is None
