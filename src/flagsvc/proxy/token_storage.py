"""The store of known tokens: in the same storage as the configuration. Only digests of tokens are in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from flagsvc.core.errors import DamagedRecordError, StoreError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.proxy.configuration.stores import StorageProvider
from flagsvc.proxy.configuration.stores.provider import read_record, write_record

LOAD_S = 10.0
"""Seconds that the start waits for a provider at most."""


class ProviderTokenStore:
    """Keeps the record of known tokens with a storage provider. Errors of the provider are logged."""

    def __init__(
        self, provider: StorageProvider, key: str, log: Logger, close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Take the provider and the key of the record. `close` closes the provider's connections, if no one else uses them."""
        self._close = close
        self._provider = provider
        self._key = key
        self._unread = OutageLog(log, "the stored tokens could not be read", "the stored tokens can be read again")
        self._unsaved = OutageLog(log, "the known tokens could not be stored", "the known tokens are stored again")

    async def load(self) -> bytes | None:
        """Return what was stored last, or None, also if that is damaged. Raises StoreError if it cannot be read now."""
        try:
            async with asyncio.timeout(LOAD_S):
                found = await read_record(self._provider, self._key)
        except DamagedRecordError as error:
            self._unread.log_failure(error)
            return None
        except Exception as error:  # a provider of a user may raise anything
            self._unread.log_failure(error)
            raise StoreError("the stored tokens could not be read") from None
        self._unread.log_recovery()
        return found

    async def save(self, data: bytes) -> bool:
        """Store the record. Returns whether that went well."""
        try:
            await write_record(self._provider, self._key, data)
        except Exception as error:  # as in load
            self._unsaved.log_failure(error)
            return False
        self._unsaved.log_recovery()
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        if self._close is not None:
            await self._close()
