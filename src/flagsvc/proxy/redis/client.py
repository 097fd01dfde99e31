"""A client of a Redis or Valkey server. Every request has a time limit, and every error is a StoreError.

The client does not retry; its callers decide when to retry. Messages of the server are not repeated in errors, because they may
quote a command with the password.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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

from flagsvc.core.errors import StoreError
from flagsvc.http.client.dialling import in_words
from flagsvc.http.client.sealing import sealed
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
        """Close all connections."""
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
    """Return how often the current task was cancelled."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def pool_of(access: Access) -> ConnectionPool:
    """Return a pool of connections to a server."""
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
