"""Stores the configuration of a fleet: only the leader writes, and the fleet learns what the poller accepted."""

from __future__ import annotations

from flagsvc.core.log import Logger
from flagsvc.proxy.configuration.stores import DocumentStorage, StoredDocument
from flagsvc.proxy.replicas.fleet import Fleet
from flagsvc.proxy.replicas.store import ServerStore


class SharedDocumentStorage(DocumentStorage):
    """A document storage that tells the fleet what it reads and what the poller accepted."""

    def __init__(self, fleet: Fleet, store: ServerStore, key: str, log: Logger) -> None:
        """Take the fleet, the storage and the key."""
        super().__init__(SharedStore(fleet, store), key, log)
        self._fleet = fleet

    async def load(self) -> StoredDocument | None:
        """Return the stored record, or None if there is none or it cannot be read."""
        record = await super().load()
        if record is not None:
            self._fleet.accept(record)
        return record

    def save(self, record: StoredDocument) -> None:
        """Record what the poller accepted. The leader also stores and publishes it."""
        self._fleet.accept(record)
        if self._fleet.leads:
            super().save(record)

    def retry_save(self) -> None:
        """Do nothing. With every heartbeat, a leader sees what is stored, and stores its own configuration if that differs.

        The record whose write failed may be one that this replica serves no longer.
        """


class SharedStore:
    """The storage provider of the document storage: every replica reads, and the leader writes."""

    def __init__(self, fleet: Fleet, store: ServerStore) -> None:
        self._fleet = fleet
        self._store = store

    async def get(self, key: str) -> bytes | None:
        """Return the stored data. Raises StoreError."""
        return await self._store.get(key)

    async def set(self, key: str, data: bytes) -> None:
        """Store and publish, unless another replica leads meanwhile. Raises StoreError."""
        await self._fleet.publish(data)
