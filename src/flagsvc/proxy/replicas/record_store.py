"""Unsent usage metrics on a Redis or Valkey server: one hash, with a field for each process.

If several processes remove a field, the server tells one of them that it existed. Methods raise StoreError.
"""

from __future__ import annotations

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores.file import frame, unframe
from flagsvc.proxy.configuration.stores.record_stores import MAX_RECORDS
from flagsvc.proxy.replicas.client import Client, off_loop


class ServerRecordStore:
    """The records of one configuration (`flagsvc.proxy.usage.RecordStore`)."""

    shared = True

    def __init__(self, client: Client, prefix: str, key: str) -> None:
        """Take the client, the prefix of all names, and the key of the usage records (`make_usage_key`)."""
        self._client = client
        self._name = f"{prefix}:usage:{key}"

    async def put(self, name: str, data: bytes) -> None:
        """Store a record."""
        others = [each for each in await self.names() if each != name]
        if len(others) >= MAX_RECORDS:
            raise StoreError(f"there are {MAX_RECORDS} records of usage metrics in `{self._name}` already")
        await self._client.call("HSET", self._name, name, await off_loop(frame, data))

    async def get(self, name: str) -> bytes | None:
        """Return a record, or None."""
        content = await self._client.call("HGET", self._name, name)
        data = await off_loop(unframe, content) if isinstance(content, bytes) else None
        if content is not None and data is None:
            raise StoreError(f"what is stored in `{self._name}` as `{name}` is not whole, or not flagsvc's")
        return data

    async def names(self) -> list[str]:
        """Return the names of all records."""
        found = await self._client.call("HKEYS", self._name)
        return [bytes(each).decode("ascii", "replace") for each in found]

    async def remove(self, name: str) -> bool:
        """Remove a record and return whether it existed."""
        return int(await self._client.call("HDEL", self._name, name)) == 1
