"""Records of usage metrics in a folder, and in a provider that knows two methods."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import (
    ABANDONED_S,
    MAX_RECORDS,
    FileRecordStore,
    FileStore,
    SingleRecordStore,
    frame,
)
from flagsvc.testing import MemoryStore
from support.aio import asynchronous

KEY = "0123abc"


def files(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


@asynchronous
async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Files have mode 0600 in a folder with 0700, with any umask. Each record is a file beside the configuration."""
    folder = tmp_path / "state" / "flagsvc"
    before = os.umask(0)
    try:
        await FileRecordStore(folder, KEY).put("0a", b"one")
        await FileRecordStore(folder, KEY).put("0a", b"two")
        FileStore(folder).set(KEY, b"flags")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert files(folder) == [f"{KEY}.0a.usage", f"{KEY}.flags"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@asynchronous
async def test_keys_do_not_see_each_other(tmp_path: Path) -> None:
    """Counts of one environment are never sent to another; nor is a configuration taken for counts."""
    one, two = FileRecordStore(tmp_path, "one"), FileRecordStore(tmp_path, "two")
    FileStore(tmp_path).set("one", b"flags")
    await one.put("0a", b"1")
    assert (await one.names(), await two.names(), await two.get("0a")) == (["0a"], [], None)
    assert not await two.remove("0a")
    assert FileStore(tmp_path).get("one") == b"flags"


@asynchronous
async def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    """It is made with the first record."""
    record_store = FileRecordStore(tmp_path / "missing", KEY)
    assert (await record_store.names(), await record_store.get("0a"), await record_store.remove("0a")) == (
        [],
        None,
        False,
    )
    await record_store.put("0a", b"x")
    assert await record_store.names() == ["0a"]


@asynchronous
async def test_a_damaged_record_is_an_error_and_never_half_of_one(tmp_path: Path) -> None:
    """A record that is cut off, changed in any byte or has bytes after it is an error."""
    record_store = FileRecordStore(tmp_path, KEY)
    await record_store.put("0a", b"data")
    path = tmp_path / f"{KEY}.0a.usage"
    whole = path.read_bytes()
    changed = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for content in (*(whole[:length] for length in range(len(whole))), *changed, whole + b"x"):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="not whole"):
            await record_store.get("0a")


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@asynchronous
async def test_a_stop_at_every_step_leaves_the_old_record(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No temporary file remains."""
    record_store = FileRecordStore(tmp_path, KEY)
    await record_store.put("0a", b"old")

    def fail(*_: object) -> None:
        raise OSError(5, "the machine stopped")

    target = {"write": (os, "fdopen"), "fsync": (os, "fsync"), "replace": (Path, "replace")}[step]
    with monkeypatch.context() as patch:
        patch.setattr(*target, fail)
        with pytest.raises(StoreError, match="stopped"):
            await record_store.put("0a", b"new")
    assert await record_store.get("0a") == b"old" and files(tmp_path) == [f"{KEY}.0a.usage"]


@asynchronous
async def test_temporary_files_of_killed_processes_are_swept_away(tmp_path: Path) -> None:
    """Old ones of this key; not those that somebody may be writing now."""
    old, young = tmp_path / f".{KEY}.0a-aa.tmp", tmp_path / f".{KEY}.0b-bb.tmp"
    for path in (old, young):
        path.write_bytes(b"x")
    long_ago = time.time() - ABANDONED_S - 60
    os.utime(old, (long_ago, long_ago))
    await FileRecordStore(tmp_path, KEY).put("0c", b"data")
    assert files(tmp_path) == sorted([young.name, f"{KEY}.0c.usage"])


@asynchronous
async def test_a_removal_counts_once_the_name_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removed record is ours, even if the folder cannot be synced."""
    record_store = FileRecordStore(tmp_path, KEY)
    await record_store.put("0a", b"x")

    def fail(*_: object) -> None:
        raise OSError(5, "the disk is slow")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert await record_store.remove("0a")
    assert not await record_store.remove("0a")


@asynchronous
async def test_records_are_bounded(tmp_path: Path) -> None:
    """Processes that are killed again and again do not fill the disk; who has a record may go on writing it."""
    record_store = FileRecordStore(tmp_path, KEY)
    for number in range(MAX_RECORDS):
        await record_store.put(str(number), b"x")
    with pytest.raises(StoreError, match="already"):
        await record_store.put("more", b"x")
    await record_store.put("0", b"y")
    assert await record_store.remove("1")
    await record_store.put("more", b"x")
    assert len(await record_store.names()) == MAX_RECORDS


@asynchronous
async def test_a_provider_of_two_methods_has_one_record_for_each_instance() -> None:
    """A record that exists at the start is of an earlier run. A record that was put later is our own."""
    store = MemoryStore()
    first = SingleRecordStore(store, KEY, "instance")
    assert not first.shared
    await first.put("0a", b"left")
    assert await first.names() == []
    second, foreign = SingleRecordStore(store, KEY, "instance"), SingleRecordStore(store, KEY, "other")
    [name] = await second.names()
    assert await second.get(name) == b"left" and await foreign.names() == []
    assert await second.remove(name)
    assert (await second.names(), await SingleRecordStore(store, KEY, "instance").names()) == ([], [])
    [key] = store.data
    assert len(key) == 40 and set(key) <= set("0123456789abcdef")


@pytest.mark.parametrize("content", [b"x", frame(b"data")[:-1], frame(b"data") + b"x"])
@asynchronous
async def test_a_damaged_record_of_a_provider_is_an_error(content: bytes) -> None:
    """Never half of one."""
    store = MemoryStore()
    record_store = SingleRecordStore(store, KEY, "instance")
    await record_store.put("0a", b"data")
    store.data[next(iter(store.data))] = content
    with pytest.raises(StoreError, match="not whole"):
        await record_store.get("0a")
