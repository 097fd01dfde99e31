"""Records of usage metrics in a folder, and in a provider that knows two methods."""

from __future__ import annotations

import os
import stat
import time
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import (
    ABANDONED_S,
    MAX_RECORDS,
    FileRecordStore,
    FileStore,
    SingleRecordStore,
    frame,
    write_record,
)
from flagsvc.testing import MemoryStore
from unit.proxy.configuration.test_file_store import KEY, files


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Files have mode 0600 in a folder with 0700, with any umask. Each record is a file beside the configuration."""
    folder = tmp_path / "state" / "flagsvc"
    before = os.umask(0)
    try:
        await FileRecordStore(folder, KEY).put("0a", b"one")
        await FileRecordStore(folder, KEY).put("0a", b"two")
        FileStore(folder).set(KEY, b"flags")
        FileStore(folder).set(KEY, b"newer flags")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert files(folder) == [f"{KEY}.0a.usage", f"{KEY}.flags", f"{KEY}.previous"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


async def test_keys_do_not_see_each_other(tmp_path: Path) -> None:
    """Counts of one environment are never sent to another; nor is a configuration taken for counts."""
    one, two = FileRecordStore(tmp_path, "one"), FileRecordStore(tmp_path, "two")
    FileStore(tmp_path).set("one", b"flags")
    await one.put("0a", b"1")
    assert (await one.names(), await two.names(), await two.get("0a")) == (["0a"], [], None)
    assert not await two.remove("0a")
    assert FileStore(tmp_path).get("one") == b"flags"


async def test_a_damaged_record_is_an_error_and_never_half_of_one(tmp_path: Path) -> None:
    """A record that is cut off, changed in any byte or has bytes after it is an error, in a folder and in a provider."""
    store = MemoryStore()
    record_stores = (FileRecordStore(tmp_path, KEY), SingleRecordStore(store, KEY, "instance"))
    for each in record_stores:
        await each.put("0a", b"data")
    path, [key], whole = tmp_path / f"{KEY}.0a.usage", store.data, frame(b"data")
    changed = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for content in (*(whole[:length] for length in range(len(whole))), *changed, whole + b"x"):
        path.write_bytes(content)
        store.data[key] = content or b"x"  # an empty record of a provider is a removed one
        for each in record_stores:
            with pytest.raises(StoreError, match="not whole"):
                await each.get("0a")


async def test_temporary_files_of_killed_processes_are_swept_away(tmp_path: Path) -> None:
    """Old ones of this key; no file that a process may be writing now, and no file of another key."""
    old, young, foreign = (tmp_path / name for name in (f".{KEY}.aa.tmp", f".{KEY}.0b-bb.tmp", ".other.aa.tmp"))
    long_ago = time.time() - ABANDONED_S - 60
    for write in (partial(write_record, FileStore(tmp_path), KEY), partial(FileRecordStore(tmp_path, KEY).put, "0c")):
        for path in (old, young, foreign):
            path.write_bytes(b"x")
        for path in (old, foreign):
            os.utime(path, (long_ago, long_ago))
        await write(b"data")
        assert [path.exists() for path in (old, young, foreign)] == [False, True, True]


async def test_a_removal_counts_once_the_name_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removed record is ours, even if the folder cannot be synced."""
    record_store = FileRecordStore(tmp_path, KEY)
    await record_store.put("0a", b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(5, "the disk is slow")))
        assert await record_store.remove("0a")
    assert not await record_store.remove("0a")


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
