"""Counts how often each toggle was on and off. It has no clock and no I/O, and stores nothing about callers.

Names that the configuration does not know are dropped: a browser must not be able to send a user's address upstream as the name of
a toggle (behaviour: Usage metrics; POST /proxy/client/metrics).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

MAX_ENTRIES: Final = 100_000
"""The most toggles and variants that are counted at the same time; further ones are left out."""
MAX_BYTES: Final = 8 * 1024 * 1024
"""The most bytes that they may take in a post, approximately; further ones are left out."""
TOGGLE_BYTES: Final = 70
"""Bytes of a toggle in a post without its name: two numbers of up to 16 digits, and the JSON around them."""
VARIANT_BYTES: Final = 20
"""Bytes of a variant in a post without its name: one number and the JSON around it."""

MAX_SIMPLE_NAMES: Final = 32
"""Up to this many names of a look-up are counted one by one, which is fastest. Of more names, each is looked up only once."""

Names = Callable[[], dict[str, Any]]
"""Returns the toggles of the configuration, each with a set of the names of its variants."""

NOTHING: Final[frozenset[object]] = frozenset({object()})
"""The variants of an unknown toggle. To search it takes as long as to search the variants of a known one."""


class ToggleCounts:
    """The counts of one toggle."""

    __slots__ = ("no", "variants", "yes")

    def __init__(self) -> None:
        self.yes = 0
        self.no = 0
        self.variants: dict[str, int] = {}


@dataclass(frozen=True)
class UsageBucket:
    """The counts between two moments, in seconds since the epoch, by toggle name."""

    start: float
    stop: float
    toggles: dict[str, ToggleCounts] = field(repr=False)

    def entries(self) -> int:
        """Return the number of toggles and variants in the bucket."""
        return sum(1 + len(counts.variants) for counts in self.toggles.values())


class UsageCounters:
    """The counters of one proxy. `entries` is the number of toggles and variants since the last `drain`.

    Entries that were left out are counted by reason: `unknown` to the configuration, `full` because of a limit, `refused` by the
    upstream for ever. `on_report` is called when a client's report is counted, because the client deletes it when it is answered.
    """

    def __init__(
        self, names: Names, now: Callable[[], float], *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
    ) -> None:
        """Take the names of the configuration, the clock's `now` (seconds since the epoch), and the limits."""
        self.unknown = 0
        self.full = 0
        self.refused = 0
        self.entries = 0
        self.on_report: Callable[[], object] | None = None
        self._names = names
        self._now = now
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._start = now()
        self._toggles: dict[str, ToggleCounts] = {}
        self._discarded = ToggleCounts()

    def count(self, name: str, enabled: bool) -> None:
        """Count one answer for one toggle."""
        self.count_all([name], [enabled])

    def count_all(self, names: list[str], states: list[bool]) -> None:
        """Count a look-up: whether each of these toggles was on. Requests wait for this, so it must be fast."""
        known = self._names()
        if len(names) > MAX_SIMPLE_NAMES:
            self._count_many(names, states, known)
            return
        for at, name in enumerate(names):
            counts = self._toggles.get(name)
            if known.get(name) is None:
                self.unknown += 1
                counts = self._discarded
            elif counts is None:
                counts = self._add_toggle(name)
            if states[at]:
                counts.yes += 1
            else:
                counts.no += 1

    def _count_many(self, names: list[str], states: list[bool], known: dict[str, Any]) -> None:
        """Count a long look-up. Each name is looked up only once.

        Otherwise the time for a name that comes a thousand times would reveal whether the configuration knows it.
        """
        found: dict[str, ToggleCounts] = {}
        unknown = ToggleCounts()
        for at, name in enumerate(names):
            counts = found.get(name)
            if counts is None:
                counts = self._toggles.get(name)
                if known.get(name) is None:
                    counts = unknown
                elif counts is None:
                    counts = self._add_toggle(name)
                found[name] = counts
            if states[at]:
                counts.yes += 1
            else:
                counts.no += 1
        self.unknown += unknown.yes + unknown.no

    def add(self, name: str, yes: int, no: int, variants: dict[str, int]) -> None:
        """Add the counts of a client. Unknown toggles and variants are left out, at the same cost as known ones."""
        known = self._names().get(name)
        counts = self._toggles.get(name)
        if known is None:
            self.unknown += 1
            known, counts = NOTHING, self._discarded
        elif counts is None:
            counts = self._add_toggle(name)
        counts.yes += yes
        counts.no += no
        for variant, times in variants.items():
            if variant in known:
                self._add_variant(counts, variant, times)
            else:
                self.unknown += 1

    def finish_report(self) -> None:
        """Note that a client's report is completely added."""
        if self.on_report is not None:
            self.on_report()

    def drain(self) -> UsageBucket | None:
        """Return the counts since the last call and start a new bucket; None if there are no counts."""
        stop = self._now()
        bucket = UsageBucket(self._start, stop, self._toggles)
        self._toggles, self.entries, self._bytes, self._start = {}, 0, 0, stop
        return bucket if bucket.toggles else None

    def peek(self) -> UsageBucket:
        """Return the counts since the last `drain` without a new bucket: the result changes with the next count."""
        return UsageBucket(self._start, self._now(), self._toggles)

    def merge(self, bucket: UsageBucket) -> None:
        """Add a bucket that could not be sent, as far as the limits allow."""
        self._start = min(self._start, bucket.start)
        for name, sent in bucket.toggles.items():
            found = self._toggles.get(name)
            counts = self._new_entry(name) if found is None else found
            if counts is None:
                self.full += 1 + len(sent.variants)
                continue
            counts.yes += sent.yes
            counts.no += sent.no
            for variant, times in sent.variants.items():
                self._add_variant(counts, variant, times)

    def refuse(self, bucket: UsageBucket) -> None:
        """Discard a bucket that the upstream will never accept, and count its entries."""
        self.refused += bucket.entries()

    def _add_toggle(self, name: str) -> ToggleCounts:
        """Return new counts for a toggle. If there is no room, they are the discarded ones."""
        counts = self._new_entry(name)
        if counts is None:
            self.full += 1
            return self._discarded
        return counts

    def _new_entry(self, name: str) -> ToggleCounts | None:
        """Return new counts for a toggle, or None if a limit is reached."""
        if not self._fits(TOGGLE_BYTES, name):
            return None
        counts = self._toggles[name] = ToggleCounts()
        return counts

    def _add_variant(self, counts: ToggleCounts, variant: str, times: int) -> None:
        before = counts.variants.get(variant)
        if before is not None:
            counts.variants[variant] = before + times
        elif counts is self._discarded or not self._fits(VARIANT_BYTES, variant):
            self.full += 1
        else:
            counts.variants[variant] = times

    def _fits(self, size: int, name: str) -> bool:
        """Return whether there is room for one more entry, and count the entry if so."""
        size += len(name.encode("utf-8", "replace"))
        if self.entries >= self._max_entries or self._bytes + size > self._max_bytes:
            return False
        self.entries += 1
        self._bytes += size
        return True
