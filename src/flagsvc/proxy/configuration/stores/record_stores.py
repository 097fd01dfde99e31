"""Stores of usage metrics that could not be sent: small named records, next to the configuration that they belong to.

Every process with the same upstream and storage sees all records. The process that removes a record owns its counts: a storage lets
only one process remove it.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from functools import partial
from pathlib import Path

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores.file import (
    frame,
    name_folder_in_errors,
    read_file,
    remove_abandoned,
    sync_folder,
    unframe,
    write_file,
)
from flagsvc.proxy.configuration.stores.provider import StorageProvider, read_record, run_in_thread, write_record

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
