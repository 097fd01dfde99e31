"""Stores counts that cannot be sent, and takes over the records of processes that have ended.

A record belongs to the process that wrote it, as long as that process runs and rewrites it. The process that removes a record from
the storage owns its counts, and a storage lets only one process remove it. Clocks of processes are not compared: a record
is abandoned when another process has not seen it change for a time (decision 0030).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from flagsvc.core.clock import Clock
from flagsvc.core.errors import StoreError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.proxy.usage.counters import UsageBucket
from flagsvc.proxy.usage.record import UnsentRecord, pack, unpack

T = TypeVar("T")

STORE_S = 2.0
"""Seconds that one read or write of the storage may take."""
CLAIM_S = 30.0
"""Seconds that the removal of a record may take. It is longer, because an unknown result leaves unknown who owns the counts."""
ABANDONED_INTERVALS = 3
"""A record that has not changed for this many of its own intervals belongs to a process that has ended."""


class RecordStore(Protocol):
    """Named records, which every process with the same upstream and storage sees. A method that raises has done nothing."""

    @property
    def shared(self) -> bool:
        """Whether several processes may have records in it at the same time."""

    async def put(self, name: str, data: bytes) -> None:
        """Store a record, completely or not at all. It replaces a record with the same name."""

    async def get(self, name: str) -> bytes | None:
        """Return a record, or None."""

    async def names(self) -> list[str]:
        """Return the names of all records."""

    async def remove(self, name: str) -> bool:
        """Remove a record and return whether it existed. Of several processes that remove it simultaneously, only one gets True."""


class RecordSighting(NamedTuple):
    """The hash of a record's data, and since when it is the same (monotonic seconds)."""

    digest: int
    since: float


class UnsentUsage:
    """The record of this process in a record store. `has_record` tells that it may exist."""

    def __init__(
        self, record_store: RecordStore, *, clock: Clock, log: Logger, interval_ms: int, wait_s: float = STORE_S
    ) -> None:
        """Take the record store, and the longest time between two writes of the record during normal operation."""
        self.has_record = False
        self.name = secrets.token_hex(8)
        self._records = record_store
        self._clock = clock
        self._log = log
        self._every = interval_ms / 1000
        self._wait_s = wait_s
        self._beat = 0
        self._seen: dict[str, RecordSighting] = {}
        self._busy: asyncio.Future[Any] | None = None
        self._unwritten = OutageLog(log, "usage metrics could not be stored", "usage metrics can be stored again")
        self._unread = OutageLog(
            log, "stored usage metrics could not be read", "stored usage metrics can be read again"
        )

    async def save(self, buckets: Sequence[UsageBucket], *, left: bool = False) -> bool:
        """Store these counts under this process's name, or remove the record if there are none. Returns whether that succeeded.

        `left` tells that this process ends, so that any other process may take the record over.
        """
        if not buckets and not self.has_record:
            return True
        try:
            if buckets:
                self._beat += 1
                data = await join_pieces(pack(buckets, left=left, beat=self._beat, every=self._every))
                self.has_record = True  # set before the write: a failed write may still have stored the record
                await self._run(partial(self._records.put, self.name, data))
            else:
                await self._run(partial(self._records.remove, self.name))
        except Exception as error:  # a record store of a user may raise any exception
            self._unwritten.log_failure(error)
            return False
        self.has_record = bool(buckets)
        self._unwritten.log_recovery()
        return True

    async def take_over(self) -> list[UsageBucket]:
        """Take over the record of one process that has ended, and return its counts; an empty list if there is none."""
        found: list[UsageBucket] = []
        failure: Exception | None = None
        began = self._clock.monotonic()
        try:
            for name in await self._other_names():
                try:
                    found = await self._claim(name)
                except StoreError as error:  # a damaged record must not hide the others
                    failure = error
                if found or self._clock.monotonic() - began >= self._wait_s:
                    break  # a slow storage is asked for the other records next time
        except Exception as error:  # as in save
            failure = error
        if failure is None:
            self._unread.log_recovery()
        else:
            self._unread.log_failure(failure)
        return found

    async def _other_names(self) -> list[str]:
        """Return the names of the records of other processes."""
        names = [name for name in await self._run(self._records.names) if name != self.name]
        self._seen = {name: sight for name, sight in self._seen.items() if name in names}
        return names

    async def _claim(self, name: str) -> list[UsageBucket]:
        """Remove an abandoned record and return its counts. Returns an empty list for any other record.

        Raises StoreError if the record cannot be read.
        """
        data = await self._run(partial(self._records.get, name))
        if data is None:
            return []
        record = unpack(data)
        if not self._is_abandoned(name, hash(data), record):
            return []
        if not await self._run(partial(self._records.remove, name), CLAIM_S):
            return []
        buckets = record.buckets()
        self._log.info("usage metrics are taken over", entries=sum(bucket.entries() for bucket in buckets))
        return buckets

    def _is_abandoned(self, name: str, digest: int, record: UnsentRecord) -> bool:
        """Return whether the process of a record has ended: the record says so, or has not changed for a time."""
        if record.left or not self._records.shared:
            return True
        now, sight = self._clock.monotonic(), self._seen.get(name)
        if sight is None or sight.digest != digest:
            sight = self._seen[name] = RecordSighting(digest, now)
        return now - sight.since >= ABANDONED_INTERVALS * record.every

    async def _run(self, work: Callable[[], Awaitable[T]], wait_s: float = 0.0) -> T:
        """Run one operation of the storage, after the operation that still runs. Raises StoreError if that takes too long."""
        wait_s = max(wait_s, self._wait_s)
        if self._busy is not None and not await wait_done(self._busy, wait_s):
            raise StoreError("the storage does not answer in time")
        doing = asyncio.ensure_future(work())
        doing.add_done_callback(retrieve_exception)
        self._busy = doing
        if not await wait_done(doing, wait_s) or doing.cancelled():
            raise StoreError("the storage does not answer in time")
        return doing.result()


async def join_pieces(pieces: Iterable[bytes]) -> bytes:
    """Return the joined pieces. The event loop runs after each piece."""
    done = []
    for piece in pieces:
        done.append(piece)
        await asyncio.sleep(0)
    return b"".join(done)


async def wait_done(doing: asyncio.Future[Any], wait_s: float) -> bool:
    """Wait for a future, for at most `wait_s` seconds; return whether it is done. It is not cancelled, so a write may continue."""
    await asyncio.wait([doing], timeout=wait_s)
    return doing.done()


def retrieve_exception(doing: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a future, so that asyncio does not log that it was never retrieved."""
    if not doing.cancelled():
        doing.exception()
