"""Counts how often each toggle was on and off. No clock of its own, no I/O, nothing about who asked.

Implements behaviour: Towards the upstream server (metrics) and Other endpoints (names the configuration does not know are
dropped: a browser must not be able to send a user's address upstream as a toggle name).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

MOST_ENTRIES = 100_000
"""Toggles and variants that are counted at the same time; what comes on top is dropped and counted as dropped."""

Known = Callable[[str], Collection[str] | None]
"""From a toggle's name to the names of its variants, None when the configuration knows no such toggle."""


class Tally:
    """What was counted for one toggle."""

    __slots__ = ("no", "variants", "yes")

    def __init__(self) -> None:
        self.yes = 0
        self.no = 0
        self.variants: dict[str, int] = {}


@dataclass(frozen=True)
class Bucket:
    """What was counted between two moments, in seconds since the epoch, by toggle name."""

    start: float
    stop: float
    toggles: dict[str, Tally] = field(repr=False)

    def entries(self) -> int:
        """Return the number of toggles and variants in it."""
        return sum(1 + len(tally.variants) for tally in self.toggles.values())


class UsageCounters:
    """The counters of one proxy. `dropped` is the number of entries that were left out: unknown, or over the bound."""

    def __init__(self, known: Known, now: Callable[[], float], *, most: int = MOST_ENTRIES) -> None:
        """Take what the configuration knows, the clock's `now` (seconds since the epoch) and the bound."""
        self.dropped = 0
        self._known = known
        self._now = now
        self._most = most
        self._entries = 0
        self._start = now()
        self._toggles: dict[str, Tally] = {}

    def count(self, name: str, enabled: bool) -> None:
        """Count one answer for one toggle. This is on the way of requests: a look-up and an addition."""
        tally = self._toggles.get(name)
        if tally is None:
            tally = None if self._known(name) is None else self._place(name)
            if tally is None:
                self.dropped += 1
                return
        if enabled:
            tally.yes += 1
        else:
            tally.no += 1

    def add(self, name: str, yes: int, no: int, variants: dict[str, int]) -> None:
        """Add what a client counted. Unknown toggles and variants are dropped; the cost is constant for each entry."""
        known = self._known(name)
        tally = None if known is None else self._toggles.get(name) or self._place(name)
        if known is None or tally is None:
            self.dropped += 1 + len(variants)
            return
        tally.yes += yes
        tally.no += no
        for variant, times in variants.items():
            if variant in known:
                self._add_variant(tally, variant, times)
            else:
                self.dropped += 1

    def drain(self) -> Bucket | None:
        """Return what was counted since the last time and begin anew; None when there is nothing."""
        stop = self._now()
        bucket = Bucket(self._start, stop, self._toggles)
        self._toggles, self._entries, self._start = {}, 0, stop
        return bucket if bucket.toggles else None

    def merge(self, bucket: Bucket) -> None:
        """Take back a bucket that could not be sent, as far as the bound allows."""
        self._start = min(self._start, bucket.start)
        for name, sent in bucket.toggles.items():
            tally = self._toggles.get(name) or self._place(name)
            if tally is None:
                self.dropped += 1 + len(sent.variants)
                continue
            tally.yes += sent.yes
            tally.no += sent.no
            for variant, times in sent.variants.items():
                self._add_variant(tally, variant, times)

    def drop(self, bucket: Bucket) -> None:
        """Give a bucket up, and count what is lost."""
        self.dropped += bucket.entries()

    def _place(self, name: str) -> Tally | None:
        """Return a new tally; None where the bound is reached."""
        if self._entries >= self._most:
            return None
        self._entries += 1
        tally = self._toggles[name] = Tally()
        return tally

    def _add_variant(self, tally: Tally, variant: str, times: int) -> None:
        before = tally.variants.get(variant)
        if before is None and self._entries >= self._most:
            self.dropped += 1
            return
        self._entries += before is None
        tally.variants[variant] = (before or 0) + times
