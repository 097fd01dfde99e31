"""What reads and writes the stored configuration."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import DocumentStorage, StorageServer, StoredDocument, storage_key
from flagsvc.testing import MemoryStore, RecordingLog, turns
from support.aio import until

RECORD = StoredDocument(b'{"features":[]}\nmore', 'W/"one"')
IDENTITY: dict[str, Any] = {"url": "u", "token": "t", "project": None, "name_prefix": None, "tags": ()}


@pytest.mark.parametrize("record", [RECORD, StoredDocument(b"", None), StoredDocument(b"\n\n", '"ü"')])
def test_a_record_comes_back(record: StoredDocument) -> None:
    """Document and ETag, with or without line breaks."""
    assert StoredDocument.unpack(record.pack()) == record


@pytest.mark.parametrize("data", [b"", b"{}", b"{}\n", b"[]\nx", b"rubbish\nx", b"\xff\nx", b'{"flagsvc":2}\nx'])
def test_other_data_are_no_record(data: bytes) -> None:
    """Somebody else's, or a later version's."""
    with pytest.raises(StoreError):
        StoredDocument.unpack(data)


def test_an_etag_of_the_wrong_kind_is_none() -> None:
    """It would end up in a header."""
    assert StoredDocument.unpack(b'{"flagsvc":1,"etag":7}\nx') == StoredDocument(b"x", None)


def test_the_key_depends_on_everything_that_decides_the_answer() -> None:
    """URL, token, project, prefix and tags, each; and on nothing else, over restarts."""
    changes = [
        {},
        {"url": "v"},
        {"token": "s"},
        {"project": "p"},
        {"name_prefix": "p"},
        {"tags": (("p", ""),)},
        {"tags": (("", "p"),)},
        {"url": "ut", "token": ""},
    ]
    keys = [storage_key(**{**IDENTITY, **change}) for change in changes]  # type: ignore[dict-item]
    assert len(set(keys)) == len(changes)
    assert storage_key(**IDENTITY) == keys[0] == "fcde99e1f97c333ba83983a7694ff06594595c2b"
    assert all(set(key) <= set("0123456789abcdef") for key in keys)


class SlowStore(MemoryStore):
    """A store that answers and writes when `gate` is open; it answers with the data of the time of the request."""

    def __init__(self, **data: StoredDocument) -> None:
        super().__init__()
        self.data = {key: record.pack() for key, record in data.items()}
        self.gate = asyncio.Event()
        self.asked = 0
        self.written: list[bytes] = []

    async def get(self, key: str) -> bytes | None:
        """Return the stored data of a key, late."""
        self.asked += 1
        found = self.data.get(key)
        await self.gate.wait()
        return found

    async def set(self, key: str, data: bytes) -> None:
        await self.gate.wait()
        self.written.append(data)
        await super().set(key, data)


async def test_of_many_records_only_the_last_is_written() -> None:
    """A slow store must not fall behind more and more, so only the last record is written."""
    store = SlowStore()
    document_storage = DocumentStorage(store, "key", RecordingLog())
    records = [StoredDocument(str(number).encode(), None) for number in range(5)]
    for record in records:
        document_storage.save(record)
        await turns()
    await document_storage.flush(0.01)
    assert store.written == []
    store.gate.set()
    await document_storage.flush(5)
    assert store.written == [records[0].pack(), records[-1].pack()]
    document_storage.save(RECORD)
    await document_storage.flush(5)
    assert store.data["key"] == RECORD.pack()


async def test_trouble_with_a_store_is_told_once_and_in_our_words() -> None:
    """Two failures of the same kind, then success: two lines. Every failure counts."""
    store, log = MemoryStore(), RecordingLog()
    document_storage = DocumentStorage(store, "key", log)
    store.fault = ValueError("cannot read: user-4711")
    assert await document_storage.load() is None
    for fault in (ValueError("cannot store: user-4711"), ValueError("still full"), None):
        store.fault = fault
        document_storage.save(RECORD)
        await document_storage.flush(5)
    assert log.at("warn") == [
        "the stored configuration could not be read",
        "the configuration could not be stored",
        "the configuration is stored again",
    ]
    assert all("ValueError at " in str(line.fields["error"]) for line in log.lines[:3])
    assert "4711" not in str(log.lines)
    assert document_storage.errors == 3


async def test_what_could_not_be_stored_is_stored_as_soon_as_it_can() -> None:
    """If the disk was full, writing is retried later without a new configuration. What is already stored is not written again."""
    store, log = MemoryStore(), RecordingLog()
    document_storage = DocumentStorage(store, "key", log)
    document_storage.retry_save()
    store.fault = OSError("full")
    document_storage.save(RECORD)
    await document_storage.flush(5)
    store.fault = None
    document_storage.retry_save()
    await document_storage.flush(5)
    assert store.data["key"] == RECORD.pack()
    store.data.clear()
    document_storage.retry_save()
    await document_storage.flush(5)
    assert store.data == {}


async def test_a_store_that_hangs_is_asked_once() -> None:
    """Loading is given up after its time, so that it does not hold the start up. A second load waits for the first call instead
    of calling the store again. A late answer still counts."""
    store, log = SlowStore(key=RECORD), RecordingLog()
    document_storage = DocumentStorage(store, "key", log, load_s=0.01)
    assert [await document_storage.load() for _ in range(3)] == [None] * 3
    assert store.asked == 1 and str(log.lines[0].fields["error"]).startswith("TimeoutError at ")
    store.gate.set()
    await turns()
    assert await document_storage.load() == RECORD
    store.gate.clear()
    loading = asyncio.ensure_future(document_storage.load())
    await until(lambda: store.asked == 2)
    loading.cancel()
    await asyncio.wait([loading])
    store.gate.set()
    assert await document_storage.load() == RECORD and store.asked == 3


async def test_what_was_asked_for_under_another_key_is_not_taken() -> None:
    """An answer that comes after the key has changed is of another configuration."""
    store = SlowStore(former=StoredDocument(b"former"), present=StoredDocument(b"present"))
    document_storage = DocumentStorage(store, "former", RecordingLog(), load_s=0.01)
    assert await document_storage.load() is None
    document_storage.rename("present")
    store.gate.set()
    await turns()
    assert await document_storage.load() == StoredDocument(b"present")


def test_a_plain_provider_that_hangs_does_not_hold_the_end_up() -> None:
    """A disk that is gone, or a database that never answers: the event loop ends all the same, and with it the process."""
    gate = threading.Event()
    ended: list[str] = []

    class StuckStore:
        def get(self, key: str) -> bytes | None:
            gate.wait(600)
            ended.append("get")
            return None

        def set(self, key: str, data: bytes) -> None:
            gate.wait(600)
            ended.append("set")

    async def main() -> None:
        document_storage = DocumentStorage(StuckStore(), "key", RecordingLog(), load_s=0.01)
        assert await document_storage.load() is None
        document_storage.save(RECORD)
        await document_storage.flush(0.01)

    before = threading.enumerate()
    asyncio.run(main())
    assert ended == []
    left = [thread for thread in threading.enumerate() if thread not in before]
    assert len(left) == 2 and all(thread.daemon for thread in left)
    gate.set()
    for thread in left:
        thread.join(10)


async def test_another_key() -> None:
    """The present record is written under the new key at the next retry, and so are new records. The old record stays."""
    store = MemoryStore()
    document_storage = DocumentStorage(store, "old", RecordingLog())
    document_storage.save(RECORD)
    await document_storage.flush(5)
    later = DocumentStorage(store, "old", RecordingLog())
    assert await later.load() == RECORD
    for each, key in ((document_storage, "new"), (later, "newer")):
        each.rename(key)
        assert await DocumentStorage(store, key, RecordingLog()).load() is None
        each.retry_save()
        await each.flush(5)
        assert await DocumentStorage(store, key, RecordingLog()).load() == RECORD
    other = StoredDocument(b"{}", None)
    document_storage.save(other)
    await document_storage.flush(5)
    assert await DocumentStorage(store, "new", RecordingLog()).load() == other
    assert await DocumentStorage(store, "old", RecordingLog()).load() == RECORD


class ForgetfulServer(MemoryStore, StorageServer):
    """A storage server in memory, which may restart empty."""

    errors = 0

    async def is_lost(self, key: str) -> bool:
        """Return whether nothing is stored."""
        self._check()
        return key not in self.data

    async def aclose(self) -> None:
        """Do nothing."""


async def test_a_server_that_has_lost_the_record_gets_it_again() -> None:
    """A poll without news looks for the record. An outage of the server is no error then."""
    server = ForgetfulServer()
    document_storage = DocumentStorage(server, "key", RecordingLog())
    document_storage.save(RECORD)
    await document_storage.flush(5)
    document_storage.retry_save()
    await document_storage.flush(5)
    server.data.clear()
    server.fault = StoreError("away")
    document_storage.retry_save()
    await document_storage.flush(5)
    server.fault = None
    document_storage.retry_save()
    await document_storage.flush(5)
    assert server.data["key"] == RECORD.pack()
