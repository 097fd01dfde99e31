"""Keeps in storage what cannot be sent, and finds there what processes have left that are gone.

A record belongs to the one process that wrote it, which writes it anew as long as it lives, and to nobody else while it does.
Whoever takes it out of the storage has it, and storages let one alone do that. No clock is compared with another's: a record
is abandoned when whoever looks has not seen it change for a time (docs/decisions/0030-usage-is-never-lost.md).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from flagsvc.core.clock import Clock
from flagsvc.core.errors import StoreError
from flagsvc.core.log import Logger
from flagsvc.core.outages import OutageLog
from flagsvc.proxy.usage.counters import UsageBucket
from flagsvc.proxy.usage.record import UnsentRecord, pack, unpack

T = TypeVar("T")

STORE_S = 2.0
"""Seconds that one look into the storage, or one write, is waited for."""
CLAIM_S = 30.0
"""Seconds that taking a record away is waited for: who does not know whether it is gone cannot say whose it is."""
ABANDONED = 3
"""A record that has not changed for so many of its own intervals is of a process that is gone."""


class RecordStore(Protocol):
    """Records by name, which every process with the same upstream and storage sees. What a method raises: it was not done."""

    @property
    def shared(self) -> bool:
        """Whether several processes may have records there at the same time."""

    async def put(self, name: str, data: bytes) -> None:
        """Store a record, all of it or nothing, in place of what had its name."""

    async def get(self, name: str) -> bytes | None:
        """Return a record, None when there is none."""

    async def names(self) -> list[str]:
        """Return the names of all records."""

    async def remove(self, name: str) -> bool:
        """Remove a record and return whether it was there: of several who remove it at once one gets True."""


class RecordSighting(NamedTuple):
    """What a record looks like (a hash of it), and since when (monotonic seconds)."""

    looks: int
    since: float


class UnsentUsage:
    """One process's end of a shelf. `held` tells that there may be a record of ours."""

    def __init__(
        self, record_store: RecordStore, *, clock: Clock, log: Logger, interval_ms: int, wait_s: float = STORE_S
    ) -> None:
        """Take the shelf, and the longest time between two writings of our record while all is well."""
        self.held = False
        self.name = secrets.token_hex(8)
        self._shelf = record_store
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

    async def keep(self, buckets: Sequence[UsageBucket], *, left: bool = False) -> bool:
        """Have this in storage under our name, or nothing where there is nothing; return whether it is so.

        `left`: this process ends, whoever comes may have it.
        """
        if not buckets and not self.held:
            return True
        try:
            if buckets:
                self._beat += 1
                data = await in_turns(pack(buckets, left=left, beat=self._beat, every=self._every))
                self.held = True  # from now on: a write that fails may have been one
                await self._do(partial(self._shelf.put, self.name, data))
            else:
                await self._do(partial(self._shelf.remove, self.name))
        except Exception as error:  # a shelf may be anybody's code
            self._unwritten.log_failure(error)
            return False
        self.held = bool(buckets)
        self._unwritten.log_recovery()
        return True

    async def find(self) -> list[UsageBucket]:
        """Return what one process has left behind that is gone, and is ours from now on; nothing where there is none."""
        found: list[UsageBucket] = []
        trouble: Exception | None = None
        began = self._clock.monotonic()
        try:
            for name in await self._others():
                try:
                    found = await self._claim(name)
                except StoreError as error:  # a record that is damaged does not hide the others
                    trouble = error
                if found or self._clock.monotonic() - began >= self._wait_s:
                    break  # of a storage that is slow the others are asked for at the next time
        except Exception as error:  # as in keep
            trouble = error
        if trouble is None:
            self._unread.log_recovery()
        else:
            self._unread.log_failure(trouble)
        return found

    async def _others(self) -> list[str]:
        """Return the names of the records that are not ours."""
        names = [name for name in await self._do(self._shelf.names) if name != self.name]
        self._seen = {name: sight for name, sight in self._seen.items() if name in names}
        return names

    async def _claim(self, name: str) -> list[UsageBucket]:
        """Return what is in a record that nobody has any more, once it is ours. Raises StoreError for one that cannot be read."""
        data = await self._do(partial(self._shelf.get, name))
        if data is None:
            return []
        record = unpack(data)
        if not self._abandoned(name, hash(data), record):
            return []
        if not await self._do(partial(self._shelf.remove, name), CLAIM_S):
            return []
        buckets = record.buckets()
        self._log.info("usage metrics are taken over", entries=sum(bucket.entries() for bucket in buckets))
        return buckets

    def _abandoned(self, name: str, looks: int, record: UnsentRecord) -> bool:
        """Return whether the process of a record has ended, by its own word or because it has not written for a time."""
        if record.left or not self._shelf.shared:
            return True
        now, sight = self._clock.monotonic(), self._seen.get(name)
        if sight is None or sight.looks != looks:
            sight = self._seen[name] = RecordSighting(looks, now)
        return now - sight.since >= ABANDONED * record.every

    async def _do(self, work: Callable[[], Awaitable[T]], wait_s: float = 0.0) -> T:
        """Do one thing in storage, behind what is being done there. Raises StoreError where that takes too long."""
        wait_s = max(wait_s, self._wait_s)
        if self._busy is not None and not await over(self._busy, wait_s):
            raise StoreError("the storage does not answer in time")
        doing = asyncio.ensure_future(work())
        doing.add_done_callback(look_at)
        self._busy = doing
        if not await over(doing, wait_s) or doing.cancelled():
            raise StoreError("the storage does not answer in time")
        return doing.result()


async def in_turns(pieces: Iterable[bytes]) -> bytes:
    """Return some pieces as one; others get their turn while they are made."""
    made = []
    for piece in pieces:
        made.append(piece)
        await asyncio.sleep(0)
    return b"".join(made)


async def over(doing: asyncio.Future[Any], wait_s: float) -> bool:
    """Return whether something is done, after so many seconds at the latest. It is not cancelled: a write may go on."""
    await asyncio.wait([doing], timeout=wait_s)
    return doing.done()


def look_at(doing: asyncio.Future[Any]) -> None:
    """Look at what became of it, so that nobody complains that nobody did."""
    if not doing.cancelled():
        doing.exception()
