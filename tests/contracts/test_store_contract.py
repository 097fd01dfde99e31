"""What every storage provider must do, ours and the examples of a user's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from aio import asynchronous
from flagsvc.repository.stores import FileStore, NoStore, StorageProvider
from flagsvc.repository.stores.provider import read, write
from flagsvc.testing import MemoryStore


class PlainStore:
    """A user's provider with plain methods."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """Return what is stored."""
        return self.data.get(key)

    def set(self, key: str, data: bytes) -> None:
        """Store."""
        self.data[key] = data


class ForwardingStore:
    """A user's provider whose plain methods hand out somebody else's coroutines."""

    def __init__(self) -> None:
        self._memory = MemoryStore()

    def get(self, key: str) -> Awaitable[bytes | None]:
        """Return what is stored, later."""
        return self._memory.get(key)

    def set(self, key: str, data: bytes) -> Awaitable[None]:
        """Store, later."""
        return self._memory.set(key, data)


Make = Callable[[Path], StorageProvider]
STORES: dict[str, Make] = {
    "file": FileStore,
    "memory": lambda _: MemoryStore(),
    "plain": lambda _: PlainStore(),
    "forwarding": lambda _: ForwardingStore(),
}

every_store = pytest.mark.parametrize("make", STORES.values(), ids=STORES)


@every_store
@asynchronous
async def test_nothing_stored_is_none(make: Make, tmp_path: Path) -> None:
    """At the first start."""
    assert await read(make(tmp_path), "key") is None


@every_store
@asynchronous
async def test_the_last_data_come_back_whole(make: Make, tmp_path: Path) -> None:
    """Any bytes, any size; what is set later replaces what was set before."""
    store = make(tmp_path)
    for data in (b"one", b"", bytes(range(256)) * 4096, b"\n\n{}"):
        await write(store, "key", data)
        assert await read(store, "key") == data


@every_store
@asynchronous
async def test_keys_are_apart(make: Make, tmp_path: Path) -> None:
    """One configuration never shows under the name of another."""
    store = make(tmp_path)
    await write(store, "a" * 40, b"a")
    await write(store, "b" * 40, b"b")
    assert [await read(store, key * 40) for key in "abc"] == [b"a", b"b", None]


@asynchronous
async def test_no_store_takes_everything_and_has_nothing() -> None:
    """The one exception: `none` (specification: storage)."""
    store = NoStore()
    await write(store, "key", b"data")
    assert await read(store, "key") is None
