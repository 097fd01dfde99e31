"""Configurations and unsent usage metrics on a Redis or Valkey server. Methods raise StoreError."""

from __future__ import annotations

import contextlib
import ssl
from dataclasses import replace

import certifi

from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, load_authorities
from flagsvc.core.errors import DamagedRecordError, StoreError
from flagsvc.proxy.configuration.stores.file import MAGIC, frame, unframe
from flagsvc.proxy.configuration.stores.provider import StorageServer
from flagsvc.proxy.configuration.stores.record_stores import MAX_RECORDS
from flagsvc.proxy.redis.client import Access, Client, off_loop
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.storage import RedisAddress

OWN = CertificateOptionNames("storageCert", "storageKey", "storageKeyPassword")


class RedisStore(StorageServer):
    """Stores data under `prefix:store:key`, framed with their length and digest. One value is replaced in one step."""

    def __init__(self, client: Client, prefix: str) -> None:
        """Take the client, and the prefix of every key."""
        self.client = client
        self._prefix = prefix

    @property
    def errors(self) -> int:
        """How often a request failed."""
        return self.client.errors

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.aclose()

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
        """Store data, unless they are stored already: each replica stores what it accepts. Raises StoreError."""
        framed = await off_loop(frame, data)
        head = framed[: framed.index(b"\n") + 1]
        stored = None
        with contextlib.suppress(StoreError):  # it may be no text, which `SET` replaces
            stored = await self.client.call("GETRANGE", self.name(key), 0, len(head) - 1)
        if stored != head:
            await self.client.call("SET", self.name(key), framed)

    async def is_lost(self, key: str) -> bool:
        """Return whether nothing of flagsvc's is stored, because the server has restarted empty, say. Raises StoreError."""
        return bool(await self.client.call("GETRANGE", self.name(key), 0, len(MAGIC) - 1) != MAGIC)

    async def delete(self, key: str) -> None:
        """Delete the value of a key. Raises StoreError."""
        await self.client.call("DEL", self.name(key))

    def record_store(self, key: str) -> RedisRecordStore:
        """Return the store of a configuration's usage records."""
        return RedisRecordStore(self.client, self._prefix, key)


class RedisRecordStore:
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


def make_store(options: ProxyOptions, server: RedisAddress) -> RedisStore:
    """Return the store on a storage server. Raises ConfigurationError if a file of certificates cannot be used."""
    password = options.storage_password or server.password
    server = replace(server, password=password)
    context = make_tls_context(options) if server.tls else None
    return RedisStore(Client(Access(server, context, options.storage_timeout / 1000)), options.storage_prefix)


def make_tls_context(options: ProxyOptions) -> ssl.SSLContext:
    """Return the TLS context for the storage server. Raises ConfigurationError if a file cannot be used."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    if options.storage_ca is not None:
        load_authorities(context, "storageCa", options.storage_ca)
    if options.storage_cert is not None:
        CertificateFiles(OWN, options.storage_cert, options.storage_key, options.storage_key_password).load(context)
    return context
