"""Storage on a Redis or Valkey server, which replicas share (specification: Options; decision 0013).

Every request has a time limit, and every error is a StoreError. This module imports Redis, so it is
imported only if the storage is on such a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import certifi
from redis import asyncio as aioredis
from redis.asyncio.connection import Connection, ConnectionPool, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TimeoutError,
)

from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, load_authorities
from flagsvc.core.errors import DamagedRecordError, StoreError
from flagsvc.http.client.dialling import in_words
from flagsvc.http.client.sealing import sealed
from flagsvc.proxy.configuration.stores import MAGIC, MAX_RECORDS, StorageServer, frame, unframe
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.storage import RedisAddress

LARGE_BYTES = 65_536
"""Data of at least this many bytes are digested in a thread."""

REASONS: tuple[tuple[type[Exception], str], ...] = (
    (AuthenticationError, "it refuses the user or the password"),
    (NoPermissionError, "it does not permit the user a command or a key"),
    (BusyLoadingError, "it is still loading its data"),
    (ReadOnlyError, "it is a replica that takes no writes"),
    (OutOfMemoryError, "it has no memory left"),
    (TimeoutError, "it did not answer in time"),
    (asyncio.TimeoutError, "it did not answer in time"),
    (InvalidResponse, "what it says is no answer of such a server"),
    (ValueError, "what it says is no answer of such a server"),
)
"""Error class → its description. The first class that fits counts, because some are subclasses of others."""


@dataclass(frozen=True)
class Access:
    """How to reach a server: its address, the TLS context if it uses TLS, and the seconds that an answer may take."""

    server: RedisAddress
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    timeout_s: float = 2.0


class TlsConnection(Connection):
    """A connection with a TLS context that is made once, not for each connection."""

    def __init__(self, *, tls: ssl.SSLContext, **given: Any) -> None:
        super().__init__(**given)
        self._tls = tls

    def _connection_arguments(self) -> Mapping[str, Any]:
        return {**super()._connection_arguments(), "ssl": self._tls}


class Client:
    """A client of one server. `errors` counts its failures."""

    def __init__(self, access: Access) -> None:
        """Take the address and the time limits. No connection is opened yet."""
        self.errors = 0
        self._timeout_s = access.timeout_s
        self._address = access.server.address
        self._pool = pool_of(access)
        self._redis = aioredis.Redis(connection_pool=self._pool)

    @sealed
    async def call(self, *words: bytes | str | int) -> Any:
        """Return the answer to a command. Raises StoreError."""
        async with self.bounded():
            return await self._redis.execute_command(*words)  # type: ignore[no-untyped-call]

    async def aclose(self) -> None:
        with contextlib.suppress(RedisError, OSError):
            await self._pool.aclose()

    @contextlib.asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Stop work that takes too long, and turn every error into a StoreError.

        A task that is cancelled inside the block is also cancelled
        after it. redis-py sends with `asyncio.wait_for`, which in Python 3.11 loses a cancellation that arrives at the
        moment when the work is done. Without this, such a task would never end.
        """
        before = cancellations()
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except (RedisError, OSError, ValueError) as error:  # redis-py takes what should be a length for one
            self.errors += 1
            if cancellations() == before:
                raise StoreError(f"the storage server at `{self._address}`: {reason(error)}") from None
        if cancellations() > before:
            raise asyncio.CancelledError


def cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def pool_of(access: Access) -> ConnectionPool:
    server = access.server
    given: dict[str, Any] = {
        "db": server.database,
        "username": server.user,
        "password": server.password,
        "socket_timeout": access.timeout_s,
        "socket_connect_timeout": access.timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
    }
    if server.path:
        return ConnectionPool(UnixDomainSocketConnection, path=server.path, **given)
    given |= {"host": server.host, "port": server.port}
    if access.tls is not None:
        return ConnectionPool(TlsConnection, tls=access.tls, **given)
    return ConnectionPool(Connection, **given)


def reason(error: Exception) -> str:
    """Return the description of an error, in flagsvc's own words."""
    for kind, text in REASONS:
        if isinstance(error, kind):
            return text
    below = error if isinstance(error, OSError) else error.__context__
    if isinstance(below, OSError):
        return f"it cannot be reached: {in_words(below)}"
    return "the connection broke" if isinstance(error, ConnectionError) else f"it answers with {type(error).__name__}"


async def off_loop(work: Any, data: bytes) -> Any:
    """Return the result of a function of data; in a thread if the data are large."""
    return work(data) if len(data) < LARGE_BYTES else await asyncio.to_thread(work, data)


OWN = CertificateOptionNames("storageCert", "storageKey", "storageKeyPassword")


class RedisStore(StorageServer):
    """Stores data under `prefix:store:key`, framed with their length and digest. One value is replaced in one step."""

    def __init__(self, client: Client, prefix: str) -> None:
        """Take the client, and the prefix of every key."""
        self.client = client
        self._prefix = prefix

    @property
    def errors(self) -> int:
        return self.client.errors

    async def aclose(self) -> None:
        await self.client.aclose()

    def name(self, key: str) -> str:
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
        found = await self._client.call("HKEYS", self._name)
        return [bytes(each).decode("ascii", "replace") for each in found]

    async def remove(self, name: str) -> bool:
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
