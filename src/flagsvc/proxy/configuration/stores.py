"""Storage that survives a restart.

There is the interface of a storage provider (specification: Options), a provider over a folder, and one that stores nothing.
`DocumentStorage` keeps one record for each configuration, written in the background. Record stores keep usage metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import json
import os
import secrets
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from flagsvc.core.errors import ConfigurationError, DamagedRecordError, StoreError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.proxy.upstream import Limits

T = TypeVar("T")


class StorageProvider(Protocol):
    """Keeps the last good configuration across restarts. Write your own for a database or an object store.

    Both methods may be `async def` or plain. Plain ones are called in a thread, so they may block. Keys are short and consist
    of hex digits. Data are opaque bytes, as large as the configuration. An exception of a method is logged as a warning, and
    never stops the start: a proxy without storage works, but must wait for the upstream when it starts.

    Usage metrics that cannot be sent are stored here as well, under a key for each flagsvcInstanceId. A provider that several
    processes share can have a third method, `record_store(key)`, which returns a `flagsvc.proxy.usage.RecordStore`. Then each
    process takes over the metrics that another process has left.
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


def storage_key(*, url: str, token: str, project: str | None, name_prefix: str | None, tags: Sequence[tuple[str, str]]) -> str:
    """Return the key of one configuration: a digest of everything that decides the upstream's answer.

    So no process reads the flags of another environment.
    """
    identity = [url, token, project, name_prefix, [list(tag) for tag in tags]]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]


def is_file_url(url: str) -> bool:
    return url[:5].lower() == "file:"


def file_path(url: str) -> Path:
    """Return the path of a `file:` URL. Raises ConfigurationError if the URL names another host or has no path."""
    parts = urlsplit(url)
    if parts.netloc.lower() not in ("", "localhost") or not parts.path:
        raise ConfigurationError([f"`{url}` does not name a file of this machine; write `file:///folder/name`"])
    return Path(unquote(parts.path))


MAGIC = b"flagsvc-store 1 "
MAX_BYTES = Limits().max_bytes + 65_536
"""The most bytes of a file: the largest document of an upstream, and the lines before it."""
EXPOSED = stat.S_IWGRP | stat.S_IWOTH | stat.S_IROTH
ABANDONED_S = 3600.0
"""Seconds after which a temporary file counts as left over from a process that was killed."""


class FileStore:
    """A storage provider over a `folder`. Only the owner can access its files (0600; a folder it creates has 0700)."""

    def __init__(self, folder: Path) -> None:
        """Take the folder, which is created when something is stored."""
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        """Return the newest complete generation, or None if nothing was stored.

        Raises StoreError if there are files but none of them is readable and complete.
        """
        newest, previous = self._paths(key)
        is_found = False
        failed: OSError | StoreError | None = None
        for path in (newest, previous):
            try:
                content = read_file(path)
            except (OSError, StoreError) as error:
                failed = failed or error
                continue
            is_found = is_found or content is not None
            data = unframe(content)
            if data is not None:
                return data
        if failed is not None:
            with name_folder_in_errors(self.folder):
                raise failed
        if is_found:
            raise DamagedRecordError(f"no generation of `{newest}` is whole")
        return None

    def set(self, key: str, data: bytes) -> None:
        """Store a new generation. The newest one becomes the previous one, if it is complete. Raises StoreError."""
        with name_folder_in_errors(self.folder):
            self._set(key, data)

    def _set(self, key: str, data: bytes) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        newest, previous = self._paths(key)
        temporary = self.folder / f".{key}.{secrets.token_hex(6)}.tmp"
        try:
            write_file(temporary, frame(data))
            if is_whole(newest):
                with contextlib.suppress(FileNotFoundError):  # another process on the same folder was faster
                    newest.replace(previous)
            temporary.replace(newest)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self.folder)
        remove_abandoned(self.folder, key)

    def find_exposed_mode(self) -> int | None:
        """Return the folder's mode if other users can write to it or all users can read it, else None."""
        try:
            mode = stat.S_IMODE(self.folder.stat().st_mode)
        except OSError:  # it does not exist yet, or storing will report the problem
            return None
        return mode if mode & EXPOSED else None

    def _paths(self, key: str) -> tuple[Path, Path]:
        return self.folder / f"{key}.flags", self.folder / f"{key}.previous"


@contextlib.contextmanager
def name_folder_in_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError in the block into a StoreError that names the folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"`{folder}`: {(error.strerror or str(error)).lower()}") from error


def frame(data: bytes) -> bytes:
    """Return data after a first line with its length and digest."""
    return MAGIC + f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode() + data


def unframe(content: bytes | None) -> bytes | None:
    """Return the data of a file's content; None without a file, and for a file with other content than flagsvc wrote."""
    data = (content or b"").partition(b"\n")[2]
    return data if content is not None and frame(data) == content else None


def read_file(path: Path) -> bytes | None:
    """Return the content of a file; None if there is none. Raises StoreError if it is no regular file or larger than MAX_BYTES."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # without O_NONBLOCK, opening a pipe would block
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"`{path}` is no file")
        check_size(path, found.st_size)
        return file.read(MAX_BYTES)


def check_size(path: Path, size: int) -> None:
    """Raise StoreError for a file that is larger than MAX_BYTES."""
    if size > MAX_BYTES:
        raise StoreError(f"`{path}` has {size} bytes, and flagsvc stores at most {MAX_BYTES}")


def is_whole(path: Path) -> bool:
    try:
        return unframe(read_file(path)) is not None
    except (OSError, StoreError):
        return False


def write_file(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read, and sync it to disk. Raises StoreError if it is too large."""
    check_size(path, len(content))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_abandoned(folder: Path, key: str) -> None:
    """Remove the temporary files of a key that killed processes have left."""
    for path in folder.glob(f".{key}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED_S:
                path.unlink()


LOAD_S = 10.0
"""Seconds that the start waits for a provider at most."""


@dataclass(frozen=True)
class StoredDocument:
    """A document as received from the upstream, and its ETag. A record is a line of JSON followed by the document."""

    body: bytes = field(repr=False)
    etag: str | None = None

    def pack(self) -> bytes:
        return json.dumps({"flagsvc": 1, "etag": self.etag}).encode() + b"\n" + self.body

    @classmethod
    def unpack(cls, data: bytes) -> StoredDocument:
        """Return the document of a packed record. Raises StoreError if the data are not such a record."""
        head, separator, body = data.partition(b"\n")
        try:
            fields = json.loads(head) if separator else None
        except ValueError:
            fields = None
        if not isinstance(fields, dict) or fields.get("flagsvc") != 1:
            raise StoreError("the stored data are no configuration")
        etag = fields.get("etag")
        return cls(body, etag if isinstance(etag, str) else None)


class DocumentStorage:
    """Reads and writes the record of one configuration. Errors of the storage provider are logged, never raised."""

    def __init__(self, provider: StorageProvider, key: str, log: Logger, *, load_s: float = LOAD_S) -> None:
        """Take the provider and the key (`storage_key`)."""
        self._provider = provider
        self._key = key
        self._load_s = load_s
        self._reading: asyncio.Future[bytes | None] | None = None
        self._latest: StoredDocument | None = None
        self._pending: StoredDocument | None = None
        self._unsaved: StoredDocument | None = None
        self._writer: asyncio.Task[None] | None = None
        self._outage = OutageLog(log, "the configuration could not be stored", "the configuration is stored again")
        self._unread = OutageLog(log, "the stored configuration could not be read", "the stored configuration can be read again")

    @property
    def errors(self) -> int:
        """How often the configuration could not be read or stored."""
        return self._unread.failures + self._outage.failures

    async def load(self) -> StoredDocument | None:
        """Return the stored record; None if there is no readable record.

        A provider that hangs is called only once: a second `load` waits for the same call.
        """
        seconds, before = self._load_s if self._reading is None else 0, self._latest
        reading = self._reading = self._reading or asyncio.ensure_future(read_record(self._provider, self._key))
        try:
            await asyncio.wait([reading], timeout=seconds)
        except asyncio.CancelledError:
            self._reading = None
            reading.cancel()
            raise
        try:
            if not reading.done():
                raise TimeoutError
            self._reading = None
            data = reading.result()
            record = None if data is None else StoredDocument.unpack(data)
        except Exception as error:  # a provider of a user may raise any exception
            self._unread.log_failure(error)
            return None
        self._unread.log_recovery()
        if self._latest is before:  # else a newer record was saved meanwhile
            self._latest = record
        return record

    def save(self, record: StoredDocument) -> None:
        """Write a record in the background. Of several records that come during a write, only the last one is written."""
        self._pending = self._latest = record
        if not self._is_writing:
            self._writer = asyncio.create_task(self._write())

    def rename(self, key: str) -> None:
        """Use another key from now on. The present record is written there at the next `retry_save`."""
        self._key, self._unsaved, self._reading = key, self._latest, None

    def retry_save(self) -> None:
        """Write the record again if its last write failed, or if a server has lost it: a disk may have room now."""
        if self._unsaved is not None and self._pending is None:
            self.save(self._unsaved)
        elif isinstance(self._provider, StorageServer) and self._latest is not None and not self._is_writing:
            self._writer = asyncio.create_task(self._write_if_lost(self._provider))

    async def flush(self, seconds: float) -> None:
        """Wait until everything is written, for at most `seconds`."""
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=seconds)

    @property
    def _is_writing(self) -> bool:
        return self._writer is not None and not self._writer.done()

    async def _write_if_lost(self, server: StorageServer) -> None:
        """Write the record again if the server no longer has it. An outage is logged by the next write."""
        with contextlib.suppress(StoreError):
            if await server.is_lost(self._key):
                self._pending = self._pending or self._latest
        await self._write()

    async def _write(self) -> None:
        while self._pending is not None:
            record, self._pending, self._unsaved = self._pending, None, None
            try:
                await write_record(self._provider, self._key, record.pack())
            except Exception as error:  # a provider of a user may raise any exception
                self._unsaved = record
                self._outage.log_failure(error)
            else:
                self._outage.log_recovery()


MAX_RECORDS = 64
"""The most records of one configuration: processes that are started and killed repeatedly must not fill the disk."""
SUFFIX = ".usage"
ONLY = "only"


class FileRecordStore:
    """Records in a folder, one file each, which only the owner can access. They are written atomically and checked when read."""

    shared = True

    def __init__(self, folder: Path, key: str) -> None:
        """Take the folder, which is created when something is stored, and the key of the usage records (`make_usage_key`)."""
        self._folder = folder
        self._key = key

    async def put(self, name: str, data: bytes) -> None:
        """Store a record. Raises StoreError, also if there are too many."""
        with name_folder_in_errors(self._folder):
            await run_in_thread(partial(self._put, name, data))

    async def get(self, name: str) -> bytes | None:
        """Return a record, or None. Raises StoreError, also for a damaged record."""
        with name_folder_in_errors(self._folder):
            return await run_in_thread(partial(self._get, name))

    async def names(self) -> list[str]:
        """Return the names of all records. Raises StoreError."""
        with name_folder_in_errors(self._folder):
            return await run_in_thread(self._names)

    async def remove(self, name: str) -> bool:
        """Remove a record and return whether it was there. Raises StoreError."""
        with name_folder_in_errors(self._folder):
            return await run_in_thread(partial(self._remove, name))

    def _put(self, name: str, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(name)
        if not path.exists() and len(self._names()) >= MAX_RECORDS:
            raise StoreError(f"there are {MAX_RECORDS} records of usage metrics in `{self._folder}` already")
        temporary = self._folder / f".{self._key}.{name}-{secrets.token_hex(6)}.tmp"
        try:
            write_file(temporary, frame(data))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self._folder)
        remove_abandoned(self._folder, self._key)

    def _get(self, name: str) -> bytes | None:
        content = read_file(self._path(name))
        data = unframe(content)
        if content is not None and data is None:
            raise StoreError(f"`{self._path(name)}` is not whole, or not flagsvc's")
        return data

    def _names(self) -> list[str]:
        paths = self._folder.glob(f"{self._key}.*{SUFFIX}")
        return [path.name[len(self._key) + 1 : -len(SUFFIX)] for path in paths]

    def _remove(self, name: str) -> bool:
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            return False
        with contextlib.suppress(OSError):  # the file is removed; syncing that is only best effort
            sync_folder(self._folder)
        return True

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._key}.{name}{SUFFIX}"


class SingleRecordStore:
    """One record in a provider that has only `get` and `set`: that of the process with an instance id.

    A record that exists at the start is of an earlier run of that process. To remove it is to store empty data.
    """

    shared = False

    def __init__(self, provider: StorageProvider, key: str, instance_id: str) -> None:
        """Take the provider, the key of the usage records (`make_usage_key`) and flagsvcInstanceId."""
        self._provider = provider
        self._key = hashlib.sha256(f"{key} {instance_id}".encode()).hexdigest()[:40]
        self._is_replaced = False

    async def put(self, name: str, data: bytes) -> None:
        """Store the record. Raises what the provider raises."""
        self._is_replaced = True
        await write_record(self._provider, self._key, frame(data))

    async def get(self, name: str) -> bytes | None:
        """Return the record, or None. Raises what the provider raises, and StoreError for a damaged record."""
        content = await read_record(self._provider, self._key)
        data = unframe(content)
        if content and data is None:
            raise StoreError("the stored usage metrics are not whole, or not flagsvc's")
        return data

    async def names(self) -> list[str]:
        """Return the name of the record of an earlier run, until it is removed or replaced."""
        return [] if self._is_replaced or not await read_record(self._provider, self._key) else [ONLY]

    async def remove(self, name: str) -> bool:
        """Remove the record. Raises what the provider raises."""
        self._is_replaced = True
        await write_record(self._provider, self._key, b"")
        return True


def storage_at(location: str) -> StorageProvider:
    """Return the provider of a location: `none`, or a folder as `file:///folder`. Raises ConfigurationError."""
    if location.lower() == "none":
        return NoStore()
    if is_file_url(location):
        return FileStore(file_path(location))
    raise ConfigurationError([f"`{location}` is no place to store configurations: write `none` or `file:///folder`"])
