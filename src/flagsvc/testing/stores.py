"""A storage provider and a record store in memory."""

from __future__ import annotations


class MemoryStore:
    """A storage provider (`flagsvc.StorageProvider`) that keeps its values in `data`. It raises `fault` if that is set."""

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


class MemoryRecordStore:
    """A `flagsvc.proxy.usage.RecordStore` that keeps its records in `data`. It raises `fault` if that is set."""

    def __init__(self, *, shared: bool = True) -> None:
        self.shared = shared
        self.data: dict[str, bytes] = {}
        self.fault: Exception | None = None

    async def put(self, name: str, data: bytes) -> None:
        """Store a record."""
        self._check()
        self.data[name] = data

    async def get(self, name: str) -> bytes | None:
        """Return a record."""
        self._check()
        return self.data.get(name)

    async def names(self) -> list[str]:
        """Return the names of all records."""
        self._check()
        return list(self.data)

    async def remove(self, name: str) -> bool:
        """Remove a record."""
        self._check()
        return self.data.pop(name, None) is not None

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault
