"""What every shelf must do on which usage metrics wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from aio import asynchronous
from flagsvc.repository.stores import FileShelf, OwnShelf
from flagsvc.testing import MemoryShelf, MemoryStore
from flagsvc.usage import Shelf

Make = Callable[[Path], Shelf]
SHARED: dict[str, Make] = {
    "file": lambda folder: FileShelf(folder / "folder", "a" * 40),
    "memory": lambda folder: MEMORIES.setdefault(folder, MemoryShelf()),
}
MEMORIES: dict[Path, MemoryShelf] = {}
OWN: dict[str, Make] = {"own": lambda _: OwnShelf(MemoryStore(), "a" * 40, "instance")}
EVERY = {**SHARED, **OWN}

every_shelf = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
every_shared_shelf = pytest.mark.parametrize("make", SHARED.values(), ids=SHARED)


@every_shelf
@asynchronous
async def test_at_first_there_is_nothing(make: Make, tmp_path: Path) -> None:
    """No names, no records."""
    shelf = make(tmp_path)
    assert await shelf.names() == []
    assert await shelf.get("0a") is None


@every_shelf
@asynchronous
async def test_a_record_comes_back_whole(make: Make, tmp_path: Path) -> None:
    """Any bytes, any size; what is put later replaces what was there before."""
    shelf = make(tmp_path)
    for data in (b"one", b"", bytes(range(256)) * 4096, b"\n\n{}"):
        await shelf.put("0a", data)
        assert await shelf.get("0a") == data
    assert await shelf.remove("0a")
    assert (await shelf.names(), await shelf.get("0a")) == ([], None)


@every_shared_shelf
@asynchronous
async def test_everybody_sees_every_record(make: Make, tmp_path: Path) -> None:
    """By its name, whoever put it."""
    one, other = make(tmp_path), make(tmp_path)
    assert one.shared and other.shared
    await one.put("0a", b"a")
    await other.put("0b", b"b")
    assert sorted(await one.names()) == sorted(await other.names()) == ["0a", "0b"]
    assert (await other.get("0a"), await one.get("0b")) == (b"a", b"b")


@every_shared_shelf
@asynchronous
async def test_one_alone_removes_a_record(make: Make, tmp_path: Path) -> None:
    """Of several at once one is told that it was there; afterwards nobody is."""
    shelves = [make(tmp_path) for _ in range(8)]
    for number in range(10):
        await shelves[0].put(str(number), b"data")
        told = await asyncio.gather(*(shelf.remove(str(number)) for shelf in shelves))
        assert sorted(told) == [False] * 7 + [True]
    assert not await shelves[0].remove("0")
