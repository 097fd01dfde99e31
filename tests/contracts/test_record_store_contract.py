"""The contract of every record store for waiting usage metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from flagsvc.proxy.configuration.stores import FileRecordStore, SingleRecordStore
from flagsvc.proxy.usage import RecordStore
from flagsvc.testing import MemoryRecordStore, MemoryStore

Make = Callable[[Path], RecordStore]
SHARED: dict[str, Make] = {
    "file": lambda folder: FileRecordStore(folder / "folder", "a" * 40),
    "memory": lambda folder: MEMORIES.setdefault(folder, MemoryRecordStore()),
}
MEMORIES: dict[Path, MemoryRecordStore] = {}
OWN: dict[str, Make] = {"own": lambda _: SingleRecordStore(MemoryStore(), "a" * 40, "instance")}
EVERY = {**SHARED, **OWN}

every_shelf = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
every_shared_shelf = pytest.mark.parametrize("make", SHARED.values(), ids=SHARED)


@every_shelf
async def test_at_first_there_is_nothing(make: Make, tmp_path: Path) -> None:
    """No names, no records."""
    record_store = make(tmp_path)
    assert await record_store.names() == []
    assert await record_store.get("0a") is None


@every_shelf
async def test_a_record_comes_back_whole(make: Make, tmp_path: Path) -> None:
    """Any bytes, any size; a later record replaces an earlier record."""
    record_store = make(tmp_path)
    for data in (b"one", b"", bytes(range(256)) * 4096, b"\n\n{}"):
        await record_store.put("0a", data)
        assert await record_store.get("0a") == data
    assert await record_store.remove("0a")
    assert (await record_store.names(), await record_store.get("0a")) == ([], None)


@every_shared_shelf
async def test_everybody_sees_every_record(make: Make, tmp_path: Path) -> None:
    """Every process can read a record by its name, whoever stored it."""
    one, other = make(tmp_path), make(tmp_path)
    assert one.shared and other.shared
    await one.put("0a", b"a")
    await other.put("0b", b"b")
    assert sorted(await one.names()) == sorted(await other.names()) == ["0a", "0b"]
    assert (await other.get("0a"), await one.get("0b")) == (b"a", b"b")


@every_shared_shelf
async def test_one_alone_removes_a_record(make: Make, tmp_path: Path) -> None:
    """Of several removals at once, one succeeds; later ones do not."""
    record_stores = [make(tmp_path) for _ in range(8)]
    for number in range(10):
        await record_stores[0].put(str(number), b"data")
        told = await asyncio.gather(*(record_store.remove(str(number)) for record_store in record_stores))
        assert sorted(told) == [False] * 7 + [True]
    assert not await record_stores[0].remove("0")
