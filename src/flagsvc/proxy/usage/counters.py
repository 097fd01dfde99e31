"""Counts how often each toggle was on and off. No clock of its own, no I/O, nothing about who asked.

Names that the configuration does not know are dropped: a browser must not be able to send a user's address upstream as the name of
a toggle (behaviour: Usage metrics; POST /proxy/client/metrics).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

MOST_ENTRIES: Final = 100_000
"""Toggles and variants that are counted at the same time; what comes on top is left out."""
MOST_BYTES: Final = 8 * 1024 * 1024
"""Bytes that these may take in a post, about; what comes on top is left out."""
TOGGLE_BYTES: Final = 70
"""What a toggle takes in a post beside its name: two numbers of up to 16 digits, and the words around them."""
VARIANT_BYTES: Final = 20
"""The same of a variant: one number."""

MOST_APART: Final = 32
"""Names of one look-up that are counted each by itself, which is the fastest; of more each that comes twice is looked for once."""

Names = Callable[[], dict[str, Any]]
"""Gives the toggles of the configuration, by name a set of the names of their variants."""

NOTHING: Final[frozenset[object]] = frozenset({object()})
"""The variants of a toggle that there is not: as much to look through as those of one without variants."""


class ToggleCounts:
    """What was counted for one toggle."""

    __slots__ = ("no", "variants", "yes")

    def __init__(self) -> None:
        self.yes = 0
        self.no = 0
        self.variants: dict[str, int] = {}


@dataclass(frozen=True)
class UsageBucket:
    """What was counted between two moments, in seconds since the epoch, by toggle name."""

    start: float
    stop: float
    toggles: dict[str, ToggleCounts] = field(repr=False)

    def entries(self) -> int:
        """Return the number of toggles and variants in it."""
        return sum(1 + len(tally.variants) for tally in self.toggles.values())


class UsageCounters:
    """The counters of one proxy: `entries` toggles and variants since the last draining.

    Entries that were left out are counted by reason: `unknown` to the configuration, `full` for over a bound, `refused` by
    the upstream for good. `on_report` is called once a client's report is counted: the client forgets it when it is answered.
    """

    def __init__(
        self, names: Names, now: Callable[[], float], *, most: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES
    ) -> None:
        """Take what the configuration knows, the clock's `now` (seconds since the epoch) and the bounds."""
        self.unknown = 0
        self.full = 0
        self.refused = 0
        self.entries = 0
        self.on_report: Callable[[], object] | None = None
        self._names = names
        self._now = now
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._start = now()
        self._toggles: dict[str, ToggleCounts] = {}
        self._nobody = ToggleCounts()

    def count(self, name: str, enabled: bool) -> None:
        """Count one answer for one toggle."""
        self.count_all([name], [enabled])

    def count_all(self, names: list[str], states: list[bool]) -> None:
        """Count a look-up: whether each of these toggles was on. This is on the way of requests."""
        known = self._names()
        if len(names) > MOST_APART:
            self._count_many(names, states, known)
            return
        for at, name in enumerate(names):
            tally = self._toggles.get(name)
            if known.get(name) is None:
                self.unknown += 1
                tally = self._nobody
            elif tally is None:
                tally = self._first(name)
            if states[at]:
                tally.yes += 1
            else:
                tally.no += 1

    def _count_many(self, names: list[str], states: list[bool], known: dict[str, Any]) -> None:
        """Count a long look-up. A name is looked for once: how long it takes to count it a thousand times must not tell whether the
        configuration knows it.
        """
        found: dict[str, ToggleCounts] = {}
        stranger = ToggleCounts()
        for at, name in enumerate(names):
            tally = found.get(name)
            if tally is None:
                tally = self._toggles.get(name)
                if known.get(name) is None:
                    tally = stranger
                elif tally is None:
                    tally = self._first(name)
                found[name] = tally
            if states[at]:
                tally.yes += 1
            else:
                tally.no += 1
        self.unknown += stranger.yes + stranger.no

    def add(self, name: str, yes: int, no: int, variants: dict[str, int]) -> None:
        """Add what a client counted. Unknown toggles and variants are left out, at the same constant cost for each entry."""
        known = self._names().get(name)
        tally = self._toggles.get(name)
        if known is None:
            self.unknown += 1
            known, tally = NOTHING, self._nobody
        elif tally is None:
            tally = self._first(name)
        tally.yes += yes
        tally.no += no
        for variant, times in variants.items():
            if variant in known:
                self._add_variant(tally, variant, times)
            else:
                self.unknown += 1

    def reported(self) -> None:
        """Take that all of a client's report was added."""
        if self.on_report is not None:
            self.on_report()

    def drain(self) -> UsageBucket | None:
        """Return what was counted since the last time and begin anew; None when there is nothing."""
        stop = self._now()
        bucket = UsageBucket(self._start, stop, self._toggles)
        self._toggles, self.entries, self._bytes, self._start = {}, 0, 0, stop
        return bucket if bucket.toggles else None

    def peek(self) -> UsageBucket:
        """Return what was counted since the last time and go on: the bucket changes with the next count."""
        return UsageBucket(self._start, self._now(), self._toggles)

    def merge(self, bucket: UsageBucket) -> None:
        """Take back a bucket that could not be sent, as far as the bounds allow."""
        self._start = min(self._start, bucket.start)
        for name, sent in bucket.toggles.items():
            found = self._toggles.get(name)
            tally = self._place(name) if found is None else found
            if tally is None:
                self.full += 1 + len(sent.variants)
                continue
            tally.yes += sent.yes
            tally.no += sent.no
            for variant, times in sent.variants.items():
                self._add_variant(tally, variant, times)

    def refuse(self, bucket: UsageBucket) -> None:
        """Give up a bucket that the upstream will never take, and count what is lost."""
        self.refused += bucket.entries()

    def _first(self, name: str) -> ToggleCounts:
        """Return the tally of a toggle that has none: a new one, or, where there is no room, one that nobody reads."""
        tally = self._place(name)
        if tally is None:
            self.full += 1
            return self._nobody
        return tally

    def _place(self, name: str) -> ToggleCounts | None:
        """Return a new tally; None where a bound is reached."""
        if not self._fits(TOGGLE_BYTES, name):
            return None
        tally = self._toggles[name] = ToggleCounts()
        return tally

    def _add_variant(self, tally: ToggleCounts, variant: str, times: int) -> None:
        before = tally.variants.get(variant)
        if before is not None:
            tally.variants[variant] = before + times
        elif tally is self._nobody or not self._fits(VARIANT_BYTES, variant):
            self.full += 1
        else:
            tally.variants[variant] = times

    def _fits(self, size: int, name: str) -> bool:
        """Return whether there is room for one more entry, and count it then."""
        size += len(name.encode("utf-8", "replace"))
        if self.entries >= self._most or self._bytes + size > self._most_bytes:
            return False
        self.entries += 1
        self._bytes += size
        return True
