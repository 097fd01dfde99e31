"""A storage provider on a Redis or Valkey server (specification: Options)."""

from __future__ import annotations

from flagsvc.core.errors import DamagedRecordError
from flagsvc.proxy.configuration.stores.file import frame, unframe
from flagsvc.proxy.replicas.client import Client, off_loop
from flagsvc.proxy.replicas.record_store import ServerRecordStore


class ServerStore:
    """Stores data under `prefix:store:key`, framed with their length and digest. One value is replaced in one step."""

    def __init__(self, client: Client, prefix: str) -> None:
        """Take the client, which its maker closes, and the prefix of every key."""
        self.client = client
        self._prefix = prefix

    def name(self, key: str) -> str:
        """Return the name of a key on the server."""
        return f"{self._prefix}:store:{key}"

    async def get(self, key: str) -> bytes | None:
        """Return the stored data, or None. Raises StoreError, also if the data are incomplete or not flagsvc's."""
        content = await self.client.call("GET", self.name(key))
        data = await off_loop(unframe, content) if isinstance(content, bytes) else None
        if content is not None and data is None:
            raise DamagedRecordError(f"what is stored as `{self.name(key)}` is not whole, or not flagsvc's")
        return data

    async def set(self, key: str, data: bytes) -> None:
        """Store data; they replace the former value. Raises StoreError."""
        await self.client.call("SET", self.name(key), await off_loop(frame, data))

    async def delete(self, key: str) -> None:
        """Delete the value of a key. Raises StoreError."""
        await self.client.call("DEL", self.name(key))

    def record_store(self, key: str) -> ServerRecordStore:
        """Return the store of a configuration's usage records."""
        return ServerRecordStore(self.client, self._prefix, key)
