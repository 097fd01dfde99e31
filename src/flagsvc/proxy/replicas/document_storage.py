"""Keeps a configuration that a fleet shares: only the leader writes, and the fleet knows what was accepted."""

from __future__ import annotations

from flagsvc.core.log import Logger
from flagsvc.proxy.configuration.stores import DocumentStorage, StoredDocument
from flagsvc.proxy.replicas.fleet import Fleet
from flagsvc.proxy.replicas.store import ServerStore


class SharedDocumentStorage(DocumentStorage):
    """A keeper that tells the fleet what it reads and what the poller accepted."""

    def __init__(self, fleet: Fleet, store: ServerStore, key: str, log: Logger) -> None:
        """Take the fleet, where it stores and under which key."""
        super().__init__(SharedStore(fleet, store), key, log)
        self._fleet = fleet

    async def load(self) -> StoredDocument | None:
        """Return the stored record, None when there is none or it cannot be read."""
        record = await super().load()
        if record is not None:
            self._fleet.accept(record)
        return record

    def save(self, record: StoredDocument) -> None:
        """Take what was accepted; where this replica leads, it is stored and told."""
        self._fleet.accept(record)
        if self._fleet.leads:
            super().save(record)

    def retry_save(self) -> None:
        """Do nothing: a leader sees with every beat what is stored, and stores what it has by then where that is something else.

        The record whose write failed may be one that this replica serves no longer.
        """


class SharedStore:
    """The storage provider of the keeper: every replica reads, the leader writes."""

    def __init__(self, fleet: Fleet, store: ServerStore) -> None:
        self._fleet = fleet
        self._store = store

    async def get(self, key: str) -> bytes | None:
        """Return what is stored. Raises StoreError."""
        return await self._store.get(key)

    async def set(self, key: str, data: bytes) -> None:
        """Store and tell, unless another replica leads by now. Raises StoreError."""
        await self._fleet.publish(data)
