"""Keeps a configuration in storage: one record for each configuration, written in the background."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field

from flagsvc.core.errors import StoreError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.proxy.configuration.stores.provider import StorageProvider, StorageServer, read_record, write_record

LOAD_S = 10.0
"""Seconds that the start waits for a provider at most."""


@dataclass(frozen=True)
class StoredDocument:
    """A document as received from the upstream, and its ETag. A record is a line of JSON followed by the document."""

    body: bytes = field(repr=False)
    etag: str | None = None

    def pack(self) -> bytes:
        """Return the record as bytes."""
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
        self._unread = OutageLog(
            log, "the stored configuration could not be read", "the stored configuration can be read again"
        )

    async def load(self) -> StoredDocument | None:
        """Return the stored record; None if there is none or it cannot be read.

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
