"""The shape of a storage provider, ours or a user's (specification: Options)."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Protocol, TypeVar

T = TypeVar("T")


class StorageProvider(Protocol):
    """Keeps the last good configuration across restarts. Write your own for a database or an object store.

    Both methods may be `async def` or plain. Plain ones are called in a thread, so they may block. Keys are short and consist
    of hex digits. Data are opaque bytes, as large as the configuration. An exception of a method is logged as a warning, and
    never stops the start: a proxy without storage works, but must wait for the upstream when it starts.

    Usage metrics that cannot be sent are stored here as well, under a key for each flagsvcInstanceId. A provider that several
    processes share can have a third method, `record_store(key)`, which returns a `flagsvc.proxy.usage.RecordStore`. Then each
    process takes over the metrics that another one has left.
    """

    def get(self, key: str) -> Awaitable[bytes | None] | bytes | None:
        """Return the data that were last stored under `key`, or None."""

    def set(self, key: str, data: bytes) -> Awaitable[None] | None:
        """Store `data` under `key`, either completely or not at all."""


class NoStore:
    """Stores nothing."""

    def get(self, key: str) -> bytes | None:
        """Return None."""
        return None

    def set(self, key: str, data: bytes) -> None:
        """Do nothing."""


class StorageServer(ABC):
    """A storage provider on a server that replicas share."""

    @property
    @abstractmethod
    def errors(self) -> int:
        """How often a request to the server failed."""

    @abstractmethod
    async def get(self, key: str) -> bytes | None:
        """Return the data that were last stored under `key`, or None."""

    @abstractmethod
    async def set(self, key: str, data: bytes) -> None:
        """Store `data` under `key`, unless they are stored there already."""

    @abstractmethod
    async def is_lost(self, key: str) -> bool:
        """Return whether nothing of flagsvc's is stored under `key`, because the server has restarted empty, say."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections."""


async def read_record(provider: StorageProvider, key: str) -> bytes | None:
    """Return the provider's data under a key, from an async or a plain `get`."""
    return await _call(provider.get, lambda: provider.get(key))


async def write_record(provider: StorageProvider, key: str, data: bytes) -> None:
    """Store data with the provider's `set`, async or plain."""
    await _call(provider.set, lambda: provider.set(key, data))


async def _call(method: object, call: Callable[[], Awaitable[T] | T]) -> T:
    result = call() if inspect.iscoroutinefunction(method) else await run_in_thread(call)
    return await result if inspect.isawaitable(result) else result


async def run_in_thread(call: Callable[[], T]) -> T:
    """Run a call that may block in a thread, and return its result.

    The thread is a daemon of its own: a hanging call in the event loop's threads would keep the process from ending.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()
    Thread(target=_work, args=(call, outcome), name="flagsvc storage", daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _work(call: Callable[[], T], outcome: Future[T]) -> None:
    """Call, and set the result or the exception as the outcome."""
    try:
        outcome.set_result(call())
    except BaseException as error:
        outcome.set_exception(error)


def storage_key(
    *, url: str, token: str, project: str | None, name_prefix: str | None, tags: Sequence[tuple[str, str]]
) -> str:
    """Return the key of one configuration: a digest of everything that decides the upstream's answer.

    So no process reads the flags of another environment.
    """
    identity = [url, token, project, name_prefix, [list(tag) for tag in tags]]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]
