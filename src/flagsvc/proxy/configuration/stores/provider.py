"""The shape of a storage provider, ours or a user's (specification: Configuration, storageProvider)."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Protocol, TypeVar

T = TypeVar("T")


class StorageProvider(Protocol):
    """Keeps the last good configuration over restarts. Write your own for a database or an object store.

    Both methods may be `async def` or plain; plain ones are called in a thread, so they may block. Keys are short and made of hex
    digits; data are opaque bytes, as large as the configuration. Whatever a method raises is a warning in the log, never a failed
    start: without storage a proxy works, but has to wait for the upstream when it starts.

    Usage metrics that cannot be sent wait here as well, under a key for each flagsvcInstanceId. A provider that several processes
    have at once can do better with a third method, `record_store(key)`, which returns a `flagsvc.proxy.usage.RecordStore`: then
    each takes over what another has left behind.
    """

    def get(self, key: str) -> Awaitable[bytes | None] | bytes | None:
        """Return what was last stored under `key`, or None when nothing was."""

    def set(self, key: str, data: bytes) -> Awaitable[None] | None:
        """Store `data` under `key`, all of it or nothing."""


class NoStore:
    """Stores nothing."""

    def get(self, key: str) -> bytes | None:
        """Return None."""
        return None

    def set(self, key: str, data: bytes) -> None:
        """Do nothing."""


async def read(provider: StorageProvider, key: str) -> bytes | None:
    """Return what the provider has under a key, whichever way its `get` is written."""
    return await _call(provider.get, lambda: provider.get(key))


async def write(provider: StorageProvider, key: str, data: bytes) -> None:
    """Store data, whichever way the provider's `set` is written."""
    await _call(provider.set, lambda: provider.set(key, data))


async def _call(method: object, call: Callable[[], Awaitable[T] | T]) -> T:
    result = call() if inspect.iscoroutinefunction(method) else await run_in_thread(call)
    return await result if inspect.isawaitable(result) else result


async def run_in_thread(call: Callable[[], T]) -> T:
    """Return what a call that may block returns.

    Its thread is nobody's to wait for: the threads of the event loop would keep the process from ending as long as one hangs.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()
    Thread(target=_work, args=(call, outcome), name="flagsvc storage", daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _work(call: Callable[[], T], outcome: Future[T]) -> None:
    """Call, and put what comes of it where it is waited for."""
    try:
        outcome.set_result(call())
    except BaseException as error:
        outcome.set_exception(error)


def storage_key(
    *, url: str, token: str, project: str | None, name_prefix: str | None, tags: Sequence[tuple[str, str]]
) -> str:
    """Return the key of one configuration: a digest of all that decides what the upstream answers, so that no process reads the
    flags of another environment.
    """
    identity = [url, token, project, name_prefix, [list(tag) for tag in tags]]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]
