"""A client of a Redis or Valkey server: every question is bounded in time, and every error is one of ours.

It never tries again by itself: its callers know better when to. What the server says goes into no message, for it repeats
the words of commands that it does not know, and one of them carries the password.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis import asyncio as aioredis
from redis.asyncio.client import PubSub
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
"""Bytes from which on data are digested in a thread."""
SHORTEST_S = 0.001

REASONS: tuple[tuple[type[Exception], str], ...] = (
    (AuthenticationError, "it refuses the user or the password"),
    (NoPermissionError, "it does not permit the user a command, a key or a channel"),
    (BusyLoadingError, "it is still loading its data"),
    (ReadOnlyError, "it is a replica that takes no writes"),
    (OutOfMemoryError, "it has no memory left"),
    (TimeoutError, "it did not answer in time"),
    (asyncio.TimeoutError, "it did not answer in time"),
    (InvalidResponse, "what it says is no answer of such a server"),
    (ValueError, "what it says is no answer of such a server"),
)
"""Error → what it is called; the first that fits counts, as some are subclasses of others."""


@dataclass(frozen=True)
class Access:
    """How a server is reached: where it is, TLS settings where it is spoken to over TLS, seconds that an answer may take."""

    server: RedisAddress
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    timeout_s: float = 2.0


class TlsConnection(Connection):
    """A connection with TLS settings of ours, made once and not for each connection."""

    def __init__(self, *, tls: ssl.SSLContext, **given: Any) -> None:
        super().__init__(**given)
        self._tls = tls

    def _connection_arguments(self) -> Mapping[str, Any]:
        return {**super()._connection_arguments(), "ssl": self._tls}


class Subscription:
    """A subscription to one channel."""

    def __init__(self, pubsub: PubSub, client: Client) -> None:
        self._pubsub = pubsub
        self._client = client

    @sealed
    async def receive(self, seconds: float) -> bytes | None:
        """Return the next message, None when none came within so many seconds. Raises StoreError."""
        async with self._client.bounded(seconds):
            heard = await self._pubsub.get_message(timeout=max(seconds, SHORTEST_S))
        return heard["data"] if heard is not None and heard["type"] == "message" else None


class Client:
    """Speaks to one server. `errors` counts what went wrong with it."""

    def __init__(self, access: Access) -> None:
        """Take how it is reached; nothing is opened yet."""
        self.errors = 0
        self.timeout_s = access.timeout_s
        self._address = access.server.address
        self._pool = pool_of(access)
        self._redis = aioredis.Redis(connection_pool=self._pool)

    @sealed
    async def call(self, *words: bytes | str | int) -> Any:
        """Return the answer to a command. Raises StoreError."""
        async with self.bounded():
            return await self._redis.execute_command(*words)  # type: ignore[no-untyped-call]

    async def run(self, script: str, keys: Sequence[str], *arguments: bytes | str | int) -> Any:
        """Return what a script gives, which the server runs as one step. Raises StoreError.

        Its text is sent each time: a server that was restarted does not know it any more.
        """
        return await self.call("EVAL", script, len(keys), *keys, *arguments)

    @contextlib.asynccontextmanager
    async def listening(self, channel: str) -> AsyncIterator[Subscription]:
        """Subscribe to a channel until the block ends; it begins when the server has confirmed. Raises StoreError."""
        pubsub = self._redis.pubsub()
        try:
            await self._subscribe(pubsub, channel)
            yield Subscription(pubsub, self)
        finally:
            with contextlib.suppress(RedisError, OSError, ValueError):
                await pubsub.aclose()  # type: ignore[no-untyped-call]

    @sealed
    async def _subscribe(self, pubsub: PubSub, channel: str) -> None:
        async with self.bounded():
            await pubsub.subscribe(channel)
            while (said := await pubsub.get_message(timeout=self.timeout_s)) is None or said["type"] != "subscribe":
                pass

    async def aclose(self) -> None:
        """Close all connections."""
        with contextlib.suppress(RedisError, OSError):
            await self._pool.aclose()

    @contextlib.asynccontextmanager
    async def bounded(self, more_s: float = 0.0) -> AsyncIterator[None]:
        """Give up what takes too long, and make every error one of ours; `more_s` is what the work waits for on purpose.

        A task that is cancelled in the block is cancelled after it, too: redis-py sends by `asyncio.wait_for`, which in Python 3.11
        loses a cancellation that comes at the moment when it is done; a task that loses one never ends.
        """
        before = cancellations()
        try:
            async with asyncio.timeout(self.timeout_s + more_s):
                yield
        except (RedisError, OSError, ValueError) as error:  # redis-py takes what should be a length for one
            self.errors += 1
            if cancellations() == before:
                raise StoreError(f"the storage server at `{self._address}`: {reason(error)}") from None
        if cancellations() > before:
            raise asyncio.CancelledError


def cancellations() -> int:
    """Return how often the task that asks was cancelled."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def pool_of(access: Access) -> ConnectionPool:
    """Return connections to be made to a server."""
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
    """Return what went wrong, in flagsvc's own words."""
    for kind, text in REASONS:
        if isinstance(error, kind):
            return text
    below = error if isinstance(error, OSError) else error.__context__
    if isinstance(below, OSError):
        return f"it cannot be reached: {in_words(below)}"
    return "the connection broke" if isinstance(error, ConnectionError) else f"it answers with {type(error).__name__}"


async def off_loop(work: Any, data: bytes) -> Any:
    """Return what a function makes of data; in a thread where they are large."""
    return work(data) if len(data) < LARGE_BYTES else await asyncio.to_thread(work, data)
