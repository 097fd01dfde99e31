"""Stores counts that cannot be sent, and takes over the records of processes that have ended.

A record belongs to the process that wrote it, as long as that process runs and rewrites it. The process that removes a record from
the storage owns its counts, and a storage lets only one process remove it. Clocks of processes are not compared: a record
is abandoned when another process has not seen it change for a time (decision 0017).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from flagsvc.core.clock import Clock
from flagsvc.core.errors import StoreError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.http.reports import GAUGE, HISTOGRAM
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket, UsageSource
from flagsvc.proxy.usage.impact import MAX_NUMBER, Impact, ImpactKey, ImpactSeries

PIECE_ENTRIES: Final = 1000
"""Toggles and variants that are encoded in one piece, which takes less than a millisecond."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Seconds since the epoch, in the range of dates: a moment out of range could never be sent, and would be retried for ever."""
Quantity: TypeAlias = Annotated[float, msgspec.Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]
Span: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class ImpactWindow(msgspec.Struct, array_like=True):
    """One impact metric: of each sample its labels, and its values as `ImpactSeries` has them."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    bounds: list[Quantity]
    samples: list[tuple[dict[str, str], list[Quantity]]]

    def __post_init__(self) -> None:
        """Raise ValueError if a sample does not have the numbers of its kind."""
        numbers = {GAUGE: 2, HISTOGRAM: 2 + len(self.bounds)}.get(self.kind, 1)
        if any(len(values) != numbers for _, values in self.samples):
            raise ValueError("a sample has too few or too many numbers")


class UsageWindow(msgspec.Struct, array_like=True):
    """Usage metrics between two moments, in seconds since the epoch: (yes, no, variants) by toggle, and impact metrics.

    `source` is the application that counted, and its instance; None for the proxy. Earlier versions wrote no source, or no impact
    metrics.
    """

    start: Moment
    stop: Moment
    toggles: dict[str, tuple[Count, Count, dict[str, Count]]]
    source: tuple[str, str] | None = None
    impact: list[ImpactWindow] = []


class UnsentRecord(msgspec.Struct, kw_only=True):
    """The counts that one process could not send yet.

    While the process runs, it rewrites the record every `every` seconds, each time with another `beat`. `left` tells that it has
    ended, so that any other process may take the record over.
    """

    version: Literal[1] = 1
    left: bool
    beat: int
    every: Span
    usages: list[UsageWindow]

    def buckets(self) -> list[UsageBucket]:
        return [from_wire(usage) for usage in self.usages]


def pack(buckets: Sequence[UsageBucket], *, left: bool, beat: int, every: float) -> Iterator[bytes]:
    """Yield the bytes of a record in pieces, each of which takes little time. Counts that are added meanwhile may be included."""
    yield msgspec.json.encode(UnsentRecord(left=left, beat=beat, every=every, usages=[])).removesuffix(b"]}")
    for number, bucket in enumerate(buckets):
        yield b"," * (number > 0) + msgspec.json.encode((bucket.start, bucket.stop)).removesuffix(b"]") + b",{"
        for at, piece in enumerate(split_bucket(bucket)):
            yield b"," * (at > 0) + msgspec.json.encode(to_wire(piece).toggles)[1:-1]
        yield b"}," + msgspec.json.encode(bucket.source) + b",["
        for at, (key, series) in enumerate(list(bucket.impact.items())):
            yield b"," * (at > 0) + msgspec.json.encode(impact_to_wire(key, series))
        yield b"]]"
    yield b"]}"


def split_bucket(bucket: UsageBucket) -> Iterator[UsageBucket]:
    """Yield the counts of a bucket in smaller buckets, of about `PIECE_ENTRIES` toggles and variants each."""
    piece, entries = UsageBucket(bucket.start, bucket.stop, {}), 0
    for name in list(bucket.toggles):
        counts = piece.toggles[name] = bucket.toggles[name]
        entries += 1 + len(counts.variants)
        if entries >= PIECE_ENTRIES:
            yield piece
            piece, entries = UsageBucket(bucket.start, bucket.stop, {}), 0
    if piece.toggles:
        yield piece


def unpack(data: bytes) -> UnsentRecord:
    """Return the record from its bytes. Raises StoreError if they are not such a record."""
    try:
        record: UnsentRecord = msgspec.json.decode(data, type=UnsentRecord)
    except ValueError:
        raise StoreError("the stored data are no usage metrics") from None
    return record


def to_wire(bucket: UsageBucket) -> UsageWindow:
    """Return a bucket in the form of a record."""
    toggles = {name: (counts.yes, counts.no, counts.variants) for name, counts in bucket.toggles.items()}
    impact = [impact_to_wire(key, series) for key, series in bucket.impact.items()]
    return UsageWindow(bucket.start, bucket.stop, toggles, bucket.source, impact)


def from_wire(usage: UsageWindow) -> UsageBucket:
    """Return the bucket from the form of a record."""
    toggles = {name: make_counts(*counts) for name, counts in usage.toggles.items()}
    source = None if usage.source is None else UsageSource(*usage.source)
    return UsageBucket(usage.start, usage.stop, toggles, source, impact_from_wire(usage.impact))


def impact_to_wire(key: ImpactKey, series: ImpactSeries) -> ImpactWindow:
    samples = [(dict(labels), values) for labels, values in series.samples.items()]
    return ImpactWindow(key.name, key.kind, series.help, list(key.bounds), samples)  # type: ignore[arg-type]


def impact_from_wire(metrics: list[ImpactWindow]) -> Impact:
    found: Impact = {}
    for metric in metrics:
        series = found[ImpactKey(metric.name, metric.kind, tuple(metric.bounds))] = ImpactSeries(metric.help)
        series.samples.update({tuple(sorted(labels.items())): values for labels, values in metric.samples})
    return found


def make_counts(yes: int, no: int, variants: dict[str, int]) -> ToggleCounts:
    counts = ToggleCounts()
    counts.yes, counts.no, counts.variants = yes, no, variants
    return counts


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

    def __init__(self, record_store: RecordStore, *, clock: Clock, log: Logger, interval_ms: int, wait_s: float = STORE_S) -> None:
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
        self._unread = OutageLog(log, "stored usage metrics could not be read", "stored usage metrics can be read again")

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
