"""The storage of a fleet's configuration: what it reads, writes and tells the fleet."""

from __future__ import annotations

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas import SharedDocumentStorage
from flagsvc.testing import MemoryStore, RecordingLog
from support.aio import asynchronous

ONE = StoredDocument(b"one", '"1"')


class FakeFleet:
    """A fleet that records its calls."""

    def __init__(self, *, leads: bool) -> None:
        self.leads = leads
        self.taken: list[StoredDocument] = []
        self.published: list[bytes] = []

    def accept(self, record: StoredDocument) -> None:
        """Record an accepted configuration."""
        self.taken.append(record)

    async def publish(self, data: bytes) -> None:
        """Record a published configuration."""
        self.published.append(data)


def document_storage(fleet: FakeFleet, store: MemoryStore, log: RecordingLog) -> SharedDocumentStorage:
    """Return a keeper over these."""
    return SharedDocumentStorage(fleet, store, "key", log)  # type: ignore[arg-type]


@pytest.mark.parametrize("leads", [True, False])
@asynchronous
async def test_what_was_accepted(leads: bool) -> None:
    """The fleet knows it either way; the leader stores it, by way of the fleet."""
    fleet, store = FakeFleet(leads=leads), MemoryStore()
    kept = document_storage(fleet, store, RecordingLog())
    kept.save(ONE)
    await kept.flush(1.0)
    assert fleet.taken == [ONE] and fleet.published == ([ONE.pack()] if leads else []) and store.data == {}


@asynchronous
async def test_what_was_stored() -> None:
    """It is what this replica serves from then on."""
    fleet, store = FakeFleet(leads=False), MemoryStore()
    kept = document_storage(fleet, store, RecordingLog())
    assert await kept.load() is None and fleet.taken == []
    store.data["key"] = ONE.pack()
    assert await kept.load() == ONE and fleet.taken == [ONE]


@asynchronous
async def test_a_storage_that_fails() -> None:
    """A warning, and a start without it."""
    fleet, store, log = FakeFleet(leads=False), MemoryStore(), RecordingLog()
    store.fault = StoreError("away")
    assert await document_storage(fleet, store, log).load() is None
    assert log.at("warn") == ["the stored configuration could not be read"]
