"""What was counted as bytes: for another process of ours, on the same machine now or in a later life. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from flagsvc.core.errors import StoreError
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket

PIECE: Final = 1000
"""Toggles and variants that are written in one go: less than a millisecond's work."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Seconds since the epoch, as far as dates go: any other could never be sent, and would be tried for ever."""
Span: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class UsageWindow(msgspec.Struct, array_like=True):
    """Usage metrics between two moments, in seconds since the epoch: (yes, no, variants) by toggle."""

    start: Moment
    stop: Moment
    toggles: dict[str, tuple[Count, Count, dict[str, Count]]]


class UnsentRecord(msgspec.Struct, kw_only=True):
    """What one process could not send yet.

    While it lives it writes the record anew every `every` seconds, each time with another `beat`; `left` says that it has ended
    and whoever comes may have it.
    """

    version: Literal[1] = 1
    left: bool
    beat: int
    every: Span
    usages: list[UsageWindow]

    def buckets(self) -> list[UsageBucket]:
        """Return what was counted."""
        return [from_wire(usage) for usage in self.usages]


def pack(buckets: Sequence[UsageBucket], *, left: bool, beat: int, every: float) -> Iterator[bytes]:
    """Give the bytes of a record piece by piece, each a moment's work. What is counted meanwhile is in it or not."""
    yield msgspec.json.encode(UnsentRecord(left=left, beat=beat, every=every, usages=[])).removesuffix(b"]}")
    for number, bucket in enumerate(buckets):
        yield b"," * (number > 0) + msgspec.json.encode((bucket.start, bucket.stop)).removesuffix(b"]") + b",{"
        for at, piece in enumerate(pieces(bucket)):
            yield b"," * (at > 0) + msgspec.json.encode(to_wire(piece).toggles)[1:-1]
        yield b"}]"
    yield b"]}"


def pieces(bucket: UsageBucket) -> Iterator[UsageBucket]:
    """Give what is in a bucket in smaller ones, of about `PIECE` toggles and variants each."""
    piece, entries = UsageBucket(bucket.start, bucket.stop, {}), 0
    for name in list(bucket.toggles):
        tally = piece.toggles[name] = bucket.toggles[name]
        entries += 1 + len(tally.variants)
        if entries >= PIECE:
            yield piece
            piece, entries = UsageBucket(bucket.start, bucket.stop, {}), 0
    if piece.toggles:
        yield piece


def unpack(data: bytes) -> UnsentRecord:
    """Return the record that was packed; raises StoreError when it is none of ours."""
    try:
        record: UnsentRecord = msgspec.json.decode(data, type=UnsentRecord)
    except ValueError:
        raise StoreError("the stored data are no usage metrics") from None
    return record


def to_wire(bucket: UsageBucket) -> UsageWindow:
    """Return a bucket as it is written."""
    toggles = {name: (tally.yes, tally.no, tally.variants) for name, tally in bucket.toggles.items()}
    return UsageWindow(bucket.start, bucket.stop, toggles)


def from_wire(usage: UsageWindow) -> UsageBucket:
    """Return the bucket that was written."""
    return UsageBucket(usage.start, usage.stop, {name: tally_of(*counts) for name, counts in usage.toggles.items()})


def tally_of(yes: int, no: int, variants: dict[str, int]) -> ToggleCounts:
    """Return what was counted for one toggle."""
    tally = ToggleCounts()
    tally.yes, tally.no, tally.variants = yes, no, variants
    return tally
