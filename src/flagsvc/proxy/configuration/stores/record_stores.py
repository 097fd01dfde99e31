"""Where usage metrics wait that could not be sent: small records by name, beside the configuration they belong to.

Every process with the same upstream and storage sees all of them. Whoever removes a record has it: storages let one alone do that.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from functools import partial
from pathlib import Path

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores.file import frame, named, read_file, sweep, sync_folder, unframe, write_file
from flagsvc.proxy.configuration.stores.provider import StorageProvider, read, run_in_thread, write

MOST_RECORDS = 64
"""Records that one configuration may have: processes that start and are killed again and again must not fill the disk."""
SUFFIX = ".usage"
ONLY = "only"


class FileRecordStore:
    """Records in a folder, one file each, for their owner alone; written whole or not at all, and checked when read."""

    shared = True

    def __init__(self, folder: Path, key: str) -> None:
        """Take the folder, which is made when something is stored, and the configuration's key (`storage_key`)."""
        self._folder = folder
        self._key = key

    async def put(self, name: str, data: bytes) -> None:
        """Store a record. Raises StoreError, also where there are too many."""
        with named(self._folder):
            await run_in_thread(partial(self._put, name, data))

    async def get(self, name: str) -> bytes | None:
        """Return a record, None when there is none. Raises StoreError, also for one that is damaged."""
        with named(self._folder):
            return await run_in_thread(partial(self._get, name))

    async def names(self) -> list[str]:
        """Return the names of all records. Raises StoreError."""
        with named(self._folder):
            return await run_in_thread(self._names)

    async def remove(self, name: str) -> bool:
        """Remove a record and return whether it was there. Raises StoreError."""
        with named(self._folder):
            return await run_in_thread(partial(self._remove, name))

    def _put(self, name: str, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(name)
        if not path.exists() and len(self._names()) >= MOST_RECORDS:
            raise StoreError(f"there are {MOST_RECORDS} records of usage metrics in `{self._folder}` already")
        temporary = self._folder / f".{self._key}.{name}-{secrets.token_hex(6)}.tmp"
        try:
            write_file(temporary, frame(data))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self._folder)
        sweep(self._folder, self._key)

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
        with contextlib.suppress(OSError):  # it is gone; that it stays so when the machine stops now is a wish
            sync_folder(self._folder)
        return True

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._key}.{name}{SUFFIX}"


class SingleRecordStore:
    """One record in a provider that knows no more than `get` and `set`: that of the one process with an instance id.

    What is there when it begins is of an earlier life of that process. Removing is storing nothing.
    """

    shared = False

    def __init__(self, provider: StorageProvider, key: str, instance_id: str) -> None:
        """Take the provider, the configuration's key (`storage_key`) and flagsvcInstanceId."""
        self._provider = provider
        self._key = hashlib.sha256(f"{key} {instance_id}".encode()).hexdigest()[:40]
        self._ours = False

    async def put(self, name: str, data: bytes) -> None:
        """Store the record. Raises what the provider raises."""
        self._ours = True
        await write(self._provider, self._key, frame(data))

    async def get(self, name: str) -> bytes | None:
        """Return the record, None when there is none. Raises what the provider raises, and StoreError for one that is damaged."""
        content = await read(self._provider, self._key)
        data = unframe(content)
        if content and data is None:
            raise StoreError("the stored usage metrics are not whole, or not flagsvc's")
        return data

    async def names(self) -> list[str]:
        """Return the name of the record that an earlier life has left, until it is taken or replaced."""
        return [] if self._ours or not await read(self._provider, self._key) else [ONLY]

    async def remove(self, name: str) -> bool:
        """Remove the record. Raises what the provider raises."""
        self._ours = True
        await write(self._provider, self._key, b"")
        return True
