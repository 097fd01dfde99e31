"""Configurations and records in a folder, and records in one record of a provider."""

from __future__ import annotations

import errno
import os
import stat
import time
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration import stores as module
from flagsvc.proxy.configuration.stores import (
    ABANDONED_S,
    MAX_BYTES,
    MAX_RECORDS,
    FileRecordStore,
    FileStore,
    SingleRecordStore,
    StoredDocument,
    frame,
    read_file,
    read_record,
    write_record,
)
from flagsvc.proxy.upstream import Limits
from flagsvc.testing import MemoryStore

KEY = "0123abc"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("cut_previous", [False, True])
def test_every_kill_point_leaves_the_old_or_the_new_generation(tmp_path: Path, cut_previous: bool) -> None:
    """The newest file cut off at every byte gives the previous generation, the previous one cut off never hides the newest."""
    store = FileStore(tmp_path)
    store.set(KEY, b"old generation")
    store.set(KEY, b"new generation")
    path = tmp_path / (f"{KEY}.previous" if cut_previous else f"{KEY}.flags")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert store.get(KEY) == (b"new generation" if cut_previous else b"old generation")


def test_both_generations_cut_off_is_an_error_and_never_half_a_document(tmp_path: Path) -> None:
    """For every pair of incomplete lengths, reading is an error."""
    store = FileStore(tmp_path)
    store.set(KEY, b"old")
    store.set(KEY, b"new")
    newest, previous = tmp_path / f"{KEY}.flags", tmp_path / f"{KEY}.previous"
    one, two = newest.read_bytes(), previous.read_bytes()
    for length in range(len(one)):
        newest.write_bytes(one[:length])
        previous.write_bytes(two[:length])
        with pytest.raises(StoreError, match="no generation"):
            store.get(KEY)


@pytest.mark.parametrize("unread", [".flags", ".previous"])
def test_a_generation_that_cannot_be_read_does_not_hide_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unread: str
) -> None:
    """The second generation is read, and a new generation can be written. If there is no other, the error says why."""
    store = FileStore(tmp_path)

    def failing(path: Path) -> bytes | None:
        if path.suffix == unread:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read_file(path)

    with monkeypatch.context() as patch:
        patch.setattr(module, "read_file", failing)
        for data in (b"one", b"two"):
            store.set(KEY, data)
    store.set(KEY, b"three")
    monkeypatch.setattr(module, "read_file", failing)
    assert store.get(KEY) == (b"two" if unread == ".flags" else b"three")
    (tmp_path / f"{KEY}{'.previous' if unread == '.flags' else '.flags'}").unlink()
    with pytest.raises(StoreError, match="input/output error"):
        store.get(KEY)


STEPS = ("write", "fsync", "replace-1")


@pytest.mark.parametrize(
    ("kind", "step"), [*(("flags", step) for step in (*STEPS, "replace-2")), *(("usage", step) for step in STEPS)]
)
async def test_a_stop_at_every_step_of_writing_leaves_what_was_whole(
    tmp_path: Path, kind: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the machine stops at any step, the last whole generation or record is found, and no temporary file remains."""
    store, records = FileStore(tmp_path), FileRecordStore(tmp_path, KEY)
    put = partial(records.put, "0a") if kind == "usage" else partial(write_record, store, KEY)
    get = partial(records.get, "0a") if kind == "usage" else partial(read_record, store, KEY)
    await put(b"old")
    calls = []

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "the machine stopped")

    def replace(path: Path, target: Path) -> None:
        calls.append(target)
        if step == f"replace-{len(calls)}":
            fail()
        os.replace(path, target)

    if step.startswith("replace"):
        monkeypatch.setattr(Path, "replace", replace)
    else:
        monkeypatch.setattr(os, "fsync" if step == "fsync" else "fdopen", fail)
    with pytest.raises(StoreError, match="the machine stopped"):
        await put(b"new")
    monkeypatch.undo()
    assert await get() == b"old"
    assert not [name for name in files(tmp_path) if name.endswith(".tmp")]
    await put(b"newer")
    assert await get() == b"newer"


def test_what_is_stored_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before it gets its name, and the folder after that: a machine that loses its power keeps both, or neither."""
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def name_folder_in_errors(path: Path, target: Path) -> Path:
        steps.append("name")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", name_folder_in_errors)
    FileStore(tmp_path).set(KEY, b"data")
    assert steps == ["file", "name", "folder"]


def test_a_damaged_generation_never_becomes_the_previous_one(tmp_path: Path) -> None:
    """The complete generation stays the previous one."""
    store = FileStore(tmp_path)
    store.set(KEY, b"good")
    store.set(KEY, b"later")
    (tmp_path / f"{KEY}.flags").write_bytes(b"damaged")
    store.set(KEY, b"new")
    (tmp_path / f"{KEY}.flags").write_bytes(b"damaged again")
    assert store.get(KEY) == b"good"


def test_another_process_may_write_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between looking at the newest generation and moving it, somebody else moved it."""
    store = FileStore(tmp_path)
    store.set(KEY, b"old")
    real = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if target.name.endswith(".previous"):
            path.unlink()
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    store.set(KEY, b"new")
    assert store.get(KEY) == b"new"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The error names the folder and the reason. The document storage logs it as a warning."""
    (tmp_path / "file").write_bytes(b"")
    store = FileStore(tmp_path / "file" / "folder")
    with pytest.raises(StoreError, match=r"`.*/file/folder`: not a directory"):
        store.set(KEY, b"data")


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is looked at before; the error names file, size and limit; another generation serves, and the next one is stored."""
    store = FileStore(tmp_path)
    for data in (b"old", b"new"):
        store.set(KEY, data)
    newest = tmp_path / f"{KEY}.flags"
    with newest.open("r+b") as file:
        file.truncate(10**12)  # takes no room on the disk, and would not fit into memory
    assert store.get(KEY) == b"old"
    (tmp_path / f"{KEY}.previous").unlink()
    said = f"^`{newest}` has 1000000000000 bytes, and flagsvc stores at most {MAX_BYTES}$"
    with pytest.raises(StoreError, match=said):
        store.get(KEY)
    store.set(KEY, b"newer")
    assert store.get(KEY) == b"newer" and files(tmp_path) == [newest.name]
    monkeypatch.setattr(module, "MAX_BYTES", newest.stat().st_size)
    assert store.get(KEY) == b"newer"
    with pytest.raises(StoreError, match="at most"):
        store.set(KEY, b"newer and larger")
    assert store.get(KEY) == b"newer"


def test_the_largest_document_can_be_stored() -> None:
    """The largest allowed document, with its first lines, can be stored."""
    assert Limits().max_bytes + len(frame(StoredDocument(b"", "x" * 10_000).pack())) < MAX_BYTES


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe under the name of a generation would never end."""
    os.mkfifo(tmp_path / f"{KEY}.flags")
    with pytest.raises(StoreError, match=f"^`{tmp_path / KEY}.flags` is no file$"):
        FileStore(tmp_path).get(KEY)


@pytest.mark.parametrize(
    ("mode", "exposed"),
    [(0o700, False), (0o750, False), (0o710, False), (0o770, True), (0o702, True), (0o704, True), (0o755, True)],
)
def test_a_folder_that_is_open_to_all(tmp_path: Path, mode: int, exposed: bool) -> None:
    """A folder that others can write or all can read is reported. A missing folder is not, because it will belong to the owner."""
    folder = tmp_path / "state"
    assert FileStore(folder).find_exposed_mode() is None
    folder.mkdir()
    folder.chmod(mode)
    assert FileStore(folder).find_exposed_mode() == (mode if exposed else None)


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
