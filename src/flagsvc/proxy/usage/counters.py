"""Counts how often each toggle was on and off. It has no clock and no I/O, and stores nothing about callers.

Names that the configuration does not know are dropped: a browser must not be able to send a user's address upstream as the name of
a toggle (behaviour: Usage metrics; POST /proxy/client/metrics).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from flagsvc.http.reports import GAUGE, MAX_COUNT
from flagsvc.proxy.usage.impact import (
    MAX_LABEL_SETS,
    Impact,
    ImpactKey,
    ImpactSample,
    ImpactSeries,
    Labels,
    combine,
    count_samples,
    is_within_bounds,
    metric_size,
    sample_size,
    text_size,
)

MAX_ENTRIES: Final = 100_000
"""The most toggles, variants and samples of impact metrics that are kept at the same time; further ones are left out."""
MAX_BYTES: Final = 8 * 1024 * 1024
"""The most bytes that they may take in a post, approximately; further ones are left out."""
TOGGLE_BYTES: Final = 70
"""Bytes of a toggle in a post without its name: two numbers of up to 16 digits, and the JSON around them."""
VARIANT_BYTES: Final = 20
"""Bytes of a variant in a post without its name: one number and the JSON around it."""

MAX_SOURCES: Final = 1000
"""The most applications whose counts are kept apart; those of further ones count as the proxy's own."""
MAX_REGISTRATIONS: Final = 1000
"""The most registrations of applications that wait to be sent; further ones are left out."""
MAX_SIMPLE_NAMES: Final = 32
"""Up to this many names of a look-up are counted one by one, which is fastest. Of more names, each is looked up only once."""

Names = Callable[[], dict[str, Any]]
"""Returns the toggles of the configuration, each with a set of the names of its variants."""

NOTHING: Final[frozenset[object]] = frozenset({object()})
"""The variants of an unknown toggle. To search it takes as long as to search the variants of a known one."""


class UsageSource(NamedTuple):
    """The server-side application that counted: its name and one running instance of it."""

    app_name: str
    instance_id: str


class ToggleCounts:
    """The counts of one toggle."""

    __slots__ = ("no", "variants", "yes")

    def __init__(self) -> None:
        self.yes = 0
        self.no = 0
        self.variants: dict[str, int] = {}


@dataclass(frozen=True)
class UsageBucket:
    """The counts between two moments, in seconds since the epoch, by toggle name. `source` is None for the proxy's own.

    `impact` has the impact metrics of the same time and source.
    """

    start: float
    stop: float
    toggles: dict[str, ToggleCounts] = field(repr=False)
    source: UsageSource | None = None
    impact: Impact = field(default_factory=dict, repr=False)

    def entries(self) -> int:
        return sum(1 + len(counts.variants) for counts in self.toggles.values()) + count_samples(self.impact)

    def parts(self) -> int:
        """Return the number of toggles and impact metrics, which a post has whole or not at all."""
        return len(self.toggles) + len(self.impact)


class UsageCounters:
    """The counters of one proxy. `entries` is the number of toggles, variants and samples since the last `drain`.

    Entries that were left out are counted by reason: `unknown` to the configuration, `full` because of a limit, `malformed`, or
    `refused` by the upstream for ever. Counts of server-side applications are kept apart by source, and so are their
    `registrations`. `on_report` is called when a client's report is counted, because the client deletes it when it is answered.

    With `sums`, what `drain` and `drain_sources` return is also added up by toggle, for `since_start`.
    """

    def __init__(
        self, names: Names, now: Callable[[], float], *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
    ) -> None:
        """Take the names of the configuration, the clock's `now` (seconds since the epoch), and the limits."""
        self.unknown = 0
        self.full = 0
        self.malformed = 0
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
        self._sources: dict[UsageSource, dict[str, ToggleCounts]] = {}
        self._sources_start = self._start
        self._impact: dict[UsageSource | None, Impact] = {}
        self.registrations: dict[UsageSource, dict[str, Any]] = {}
        self._discarded = ToggleCounts()
        self.sums: UsageSums | None = None

    def count(self, name: str, enabled: bool) -> None:
        """Count one answer for one toggle."""
        self.count_all([name], [enabled])

    def count_all(self, names: list[str], states: list[bool]) -> None:
        """Count a look-up: whether each of these toggles was on. Requests wait for it, so the code must be fast."""
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
                counts = self._add_toggle(name, self._toggles)
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
                    counts = self._add_toggle(name, self._toggles)
                found[name] = counts
            if states[at]:
                counts.yes += 1
            else:
                counts.no += 1
        self.unknown += unknown.yes + unknown.no

    def add(self, name: str, yes: int, no: int, variants: dict[str, int], source: UsageSource | None = None) -> None:
        """Add the counts of a client, or of a server-side application.

        Unknown toggles and variants are left out, at the same cost as known ones.
        """
        known = self._names().get(name)
        toggles = self._toggles_of(source)
        counts = toggles.get(name)
        if known is None:
            self.unknown += 1
            known, counts = NOTHING, self._discarded
        elif counts is None:
            counts = self._add_toggle(name, toggles)
        counts.yes = min(counts.yes + yes, MAX_COUNT)
        counts.no = min(counts.no + no, MAX_COUNT)
        for variant, times in variants.items():
            if variant in known:
                self._add_variant(counts, variant, times)
            else:
                self.unknown += 1

    def add_impact(self, sample: ImpactSample, source: UsageSource | None = None) -> None:
        """Add a sample of an impact metric, of a server-side application or the proxy's own."""
        if not is_within_bounds(sample):
            self.full += 1
            return
        key, help, labels, values = sample
        moment = [self._now()] if key.kind == GAUGE else []
        self._add_sample(self._impact_of(source), key, help, labels, [*values, *moment])

    def leave_out_unknown(self) -> None:
        """Note that counts of another environment are left out."""
        self.unknown += 1

    def leave_out(self, number: int) -> None:
        """Note that so many entries of reports are left out because they are malformed."""
        self.malformed += number

    def register(self, source: UsageSource, registration: dict[str, Any]) -> None:
        """Note the registration of a server-side application, to be sent upstream. The last one of an instance counts."""
        if source in self.registrations or len(self.registrations) < MAX_REGISTRATIONS:
            self.registrations[source] = registration
        else:
            self.full += 1

    def take_registrations(self) -> dict[UsageSource, dict[str, Any]]:
        found = self.registrations
        if found:
            self.registrations = {}
        return found

    def finish_report(self) -> None:
        """Note that a client's report is completely added."""
        if self.on_report is not None:
            self.on_report()

    def drain(self) -> UsageBucket | None:
        """Return the counts since the last call and start a new bucket; None if there are no counts."""
        stop = self._now()
        bucket = UsageBucket(self._start, stop, self._toggles, None, self._impact.pop(None, {}))
        self._toggles, self._start = {}, stop
        self._sum_up(bucket.toggles, 1)
        self._recount()
        return bucket if bucket.parts() else None

    def drain_sources(self) -> list[UsageBucket]:
        """Return the counts of server-side applications since the last call, a bucket for each, and start new ones."""
        found = self.peek_sources()
        self._sources_start = self._now()
        if found:
            self._sources = {}
            for bucket in found:
                self._sum_up(bucket.toggles, 1)
            own = self._impact.get(None)
            self._impact = {} if own is None else {None: own}
            self._recount()
        return found

    def peek_sources(self) -> list[UsageBucket]:
        """Return the counts of server-side applications without new buckets: the result changes with the next count."""
        stop = self._now()
        return [
            UsageBucket(self._sources_start, stop, toggles, source, self._impact.get(source, {}))
            for source, toggles in self._sources.items()
        ]

    def peek(self) -> UsageBucket:
        """Return the counts since the last `drain` without a new bucket: the result changes with the next count."""
        return UsageBucket(self._start, self._now(), self._toggles, None, self._impact.get(None, {}))

    def merge(self, bucket: UsageBucket) -> None:
        """Add a bucket that could not be sent, as far as the limits allow."""
        if bucket.source is None:
            self._start = min(self._start, bucket.start)
        else:
            self._sources_start = min(self._sources_start, bucket.start)
        toggles = self._toggles_of(bucket.source)
        for name, sent in bucket.toggles.items():
            found = toggles.get(name)
            counts = self._new_entry(name, toggles) if found is None else found
            if counts is None:
                self.full += 1 + len(sent.variants)
                continue
            counts.yes = min(counts.yes + sent.yes, MAX_COUNT)
            counts.no = min(counts.no + sent.no, MAX_COUNT)
            for variant, times in sent.variants.items():
                self._add_variant(counts, variant, times)
        for key, series in bucket.impact.items():
            impact = self._impact_of(bucket.source)
            for labels, values in series.samples.items():
                self._add_sample(impact, key, series.help, labels, values)

    def take_back(self, bucket: UsageBucket) -> None:
        """Add a bucket again that was drained and could not be sent."""
        self._sum_up(bucket.toggles, -1)
        self.merge(bucket)

    def since_start(self, name: str) -> tuple[int, int]:
        """Return how often a toggle was on and off since the start, as far as `sums` are kept."""
        yes, no = (0, 0) if self.sums is None else self.sums.find(name)
        for toggles in [self._toggles, *self._sources.values()]:
            counts = toggles.get(name)
            if counts is not None:
                yes += counts.yes
                no += counts.no
        return yes, no

    def sum_all(self) -> Iterator[dict[str, list[int]]]:
        """Yield how often each toggle was on and off since the start, as `[yes, no]`: after each step what is known so far."""
        return (self.sums or UsageSums()).total([self._toggles, *self._sources.values()])

    def forget_sums(self, names: Sequence[str]) -> None:
        (self.sums or UsageSums()).forget(names)

    def _sum_up(self, toggles: dict[str, ToggleCounts], sign: int) -> None:
        if self.sums is not None:
            self.sums.add(toggles, sign, self._names())

    def refuse(self, bucket: UsageBucket) -> None:
        """Discard a bucket that the upstream will never accept, and count its entries."""
        self.refused += bucket.entries()

    def _toggles_of(self, source: UsageSource | None) -> dict[str, ToggleCounts]:
        """Return the counts of a source; the proxy's own for None, and for a source that is one too many."""
        if source is None:
            return self._toggles
        found = self._sources.get(source)
        if found is None:
            if len(self._sources) >= MAX_SOURCES:
                return self._toggles
            found = self._sources[source] = {}
        return found

    def _impact_of(self, source: UsageSource | None) -> Impact:
        """Return the impact metrics of a source; the proxy's own for None, and for a source that is one too many."""
        owner = None if self._toggles_of(source) is self._toggles else source
        found = self._impact.get(owner)
        if found is None:
            found = self._impact[owner] = {}
        return found

    def _add_sample(self, impact: Impact, key: ImpactKey, help: str, labels: Labels, values: list[float]) -> None:
        """Add the values of a sample to some metrics, as far as the limits allow."""
        series = impact.get(key)
        held = None if series is None else series.samples.get(labels)
        if held is not None:
            combine(key.kind, held, values)
            return
        size = sample_size(labels, values) + (metric_size(key, help) if series is None else 0)
        if (series is not None and len(series.samples) >= MAX_LABEL_SETS) or not self._fits(size, ""):
            self.full += 1
            return
        if series is None:
            series = impact[key] = ImpactSeries(help)
        series.samples[labels] = list(values)

    def _recount(self) -> None:
        """Set `entries` and the bytes to those of the counts that are left."""
        self.entries = 0
        self._bytes = 0
        for impact in self._impact.values():
            for key, series in impact.items():
                self._bytes += metric_size(key, series.help)
                for labels, values in series.samples.items():
                    self._take_room(sample_size(labels, values), "")
        for toggles in self._sources.values() if not self._toggles else [self._toggles, *self._sources.values()]:
            for name, counts in toggles.items():
                self._take_room(TOGGLE_BYTES, name)
                for variant in counts.variants:
                    self._take_room(VARIANT_BYTES, variant)

    def _add_toggle(self, name: str, toggles: dict[str, ToggleCounts]) -> ToggleCounts:
        """Return new counts for a toggle. Without room, return the discarded counts."""
        counts = self._new_entry(name, toggles)
        if counts is None:
            self.full += 1
            return self._discarded
        return counts

    def _new_entry(self, name: str, toggles: dict[str, ToggleCounts]) -> ToggleCounts | None:
        """Return new counts for a toggle, or None if a limit is reached."""
        if not self._fits(TOGGLE_BYTES, name):
            return None
        counts = toggles[name] = ToggleCounts()
        return counts

    def _add_variant(self, counts: ToggleCounts, variant: str, times: int) -> None:
        before = counts.variants.get(variant)
        if before is not None:
            counts.variants[variant] = min(before + times, MAX_COUNT)
        elif counts is self._discarded or not self._fits(VARIANT_BYTES, variant):
            self.full += 1
        else:
            counts.variants[variant] = times

    def _fits(self, size: int, name: str) -> bool:
        """Return whether there is room for one more entry, and count the entry if so."""
        if self.entries >= self._max_entries or self._bytes + size + text_size(name) > self._max_bytes:
            return False
        self._take_room(size, name)
        return True

    def _take_room(self, size: int, name: str) -> None:
        self.entries += 1
        self._bytes += size + text_size(name)


class UsageSums:
    """The sums of the counts that were taken, as `[yes, no]` by toggle. Those of toggles that are gone are dropped.

    Only a process with pages keeps them.
    """

    def __init__(self) -> None:
        self._taken: dict[str, list[int]] = {}

    def add(self, toggles: Mapping[str, ToggleCounts], sign: int, known: Container[str]) -> None:
        """Add counts of `known` toggles, or with -1 take them away."""
        for name, counts in toggles.items():
            if name in known:
                kept = self._taken.setdefault(name, [0, 0])
                kept[0] += sign * counts.yes
                kept[1] += sign * counts.no

    def forget(self, names: Sequence[str]) -> None:
        """Drop the sums of toggles that the configuration no longer has."""
        for name in names:
            self._taken.pop(name, None)

    def find(self, name: str) -> tuple[int, int]:
        """Return how often a toggle was on and off."""
        yes, no = self._taken.get(name, (0, 0))
        return yes, no

    def total(self, waiting: Iterable[Mapping[str, ToggleCounts]]) -> Iterator[dict[str, list[int]]]:
        """Yield the sums with the counts that wait: after each step what is known so far."""
        found = {name: list(pair) for name, pair in self._taken.items()}
        yield found
        for toggles in waiting:
            for name, counts in list(toggles.items()):
                pair = found.setdefault(name, [0, 0])
                pair[0] += counts.yes
                pair[1] += counts.no
                yield found
