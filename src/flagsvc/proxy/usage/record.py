"""Counts as bytes, for a later run or another process, or for a later run of this one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from flagsvc.core.errors import StoreError
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
        """Return the counts."""
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
    """Return an impact metric in the form of a record."""
    samples = [(dict(labels), values) for labels, values in series.samples.items()]
    return ImpactWindow(key.name, key.kind, series.help, list(key.bounds), samples)  # type: ignore[arg-type]


def impact_from_wire(metrics: list[ImpactWindow]) -> Impact:
    """Return the impact metrics from the form of a record."""
    found: Impact = {}
    for metric in metrics:
        series = found[ImpactKey(metric.name, metric.kind, tuple(metric.bounds))] = ImpactSeries(metric.help)
        series.samples.update({tuple(sorted(labels.items())): values for labels, values in metric.samples})
    return found


def make_counts(yes: int, no: int, variants: dict[str, int]) -> ToggleCounts:
    """Return the counts of one toggle."""
    counts = ToggleCounts()
    counts.yes, counts.no, counts.variants = yes, no, variants
    return counts
