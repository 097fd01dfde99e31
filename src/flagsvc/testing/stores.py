"""A storage provider in memory."""

from __future__ import annotations


class MemoryStore:
    """A `flagsvc.repository.stores.StorageProvider` that keeps what it is given in `data`; raises `fault` when that is set."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.fault: Exception | None = None

    async def get(self, key: str) -> bytes | None:
        """Return what was last stored under `key`."""
        self._check()
        return self.data.get(key)

    async def set(self, key: str, data: bytes) -> None:
        """Store `data`."""
        self._check()
        self.data[key] = data

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault
