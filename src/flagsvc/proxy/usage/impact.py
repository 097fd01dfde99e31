"""Impact metrics: counters, gauges and histograms of applications, on their way to the upstream. Compiled.

An SDK reports what it measured since its last report. So counters and histograms add up, and of a gauge the last value counts
(dialects: Impact metrics; decision 0016).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from flagsvc.http.reports import GAUGE, HISTOGRAM

MAX_LABEL_SETS: Final = 1000
"""The most samples of one metric; samples with further labels are left out."""
MAX_LABELS: Final = 50
"""The most labels of one sample."""
MAX_BOUNDS: Final = 100
"""The most buckets of a histogram."""
MAX_TEXT: Final = 255
"""The most characters of a name, of a label and of its value."""
MAX_NUMBER: Final = 2.0**53 - 1
"""The largest number. For a larger one, the real server drops all impact metrics of the post."""

METRIC_BYTES: Final = 60
"""Bytes of a metric in a post without its texts and samples."""
SAMPLE_BYTES: Final = 20
"""Bytes of a sample in a post without its labels and numbers."""
LABEL_BYTES: Final = 6
"""Bytes of a label in a post without its texts."""
VALUE_BYTES: Final = 50
"""Bytes of a number in a post, with the bound of its bucket and the JSON around it."""

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""The labels of a sample with their values, sorted."""


class ImpactKey(NamedTuple):
    """What identifies a metric. `bounds` are the upper bounds of a histogram's buckets, sorted and without infinity.

    Histograms with other bounds are another metric: their buckets cannot be added.
    """

    name: str
    kind: str
    bounds: tuple[float, ...]


class ImpactSample(NamedTuple):
    """One measurement of a metric. `values` has the number of a counter or gauge; of a histogram sum, count and each bucket."""

    key: ImpactKey
    help: str
    labels: Labels
    values: list[float]


class ImpactSeries:
    """The samples of one metric by their labels. The values of a gauge are its number, and when it was measured (epoch seconds)."""

    __slots__ = ("help", "samples")

    def __init__(self, help: str) -> None:
        self.help = help
        self.samples: dict[Labels, list[float]] = {}


Impact: TypeAlias = dict[ImpactKey, ImpactSeries]
"""The impact metrics of one application."""


def combine(kind: str, held: list[float], added: list[float]) -> None:
    """Add the values of a sample to those of the same labels. Of a gauge the later one counts, in any order of arrival.

    A sum that is too large stays at the largest number.
    """
    if kind == GAUGE:
        if added[1] >= held[1]:
            held[0] = added[0]
            held[1] = added[1]
        return
    for at in range(len(held)):
        held[at] = max(-MAX_NUMBER, min(held[at] + added[at], MAX_NUMBER))


def is_within_bounds(sample: ImpactSample) -> bool:
    """Return whether the upstream takes a sample: names of a usual length, numbers that are exact, no counter that falls."""
    name, kind, bounds = sample.key
    if not sample.help or not is_short(name) or len(sample.labels) > MAX_LABELS or len(bounds) > MAX_BOUNDS:
        return False
    for label, text in sample.labels:
        if not is_short(label) or not is_short(text):
            return False
    for at, value in enumerate(sample.values):
        least = -MAX_NUMBER if kind == GAUGE or (kind == HISTOGRAM and at == 0) else 0.0
        if not least <= value <= MAX_NUMBER:
            return False
    for bound in bounds:
        if not -MAX_NUMBER <= bound <= MAX_NUMBER:
            return False
    return True


def is_short(text: str) -> bool:
    """Return whether a text has the length of a name."""
    return 0 < len(text) <= MAX_TEXT


def metric_size(key: ImpactKey, help: str) -> int:
    """Return the bytes of a metric in a post without its samples, approximately."""
    return METRIC_BYTES + text_size(key.name) + text_size(help)


def sample_size(labels: Labels, values: list[float]) -> int:
    """Return the bytes of a sample in a post, approximately."""
    size = SAMPLE_BYTES + VALUE_BYTES * len(values)
    for label, text in labels:
        size += LABEL_BYTES + text_size(label) + text_size(text)
    return size


def text_size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def count_samples(impact: Mapping[ImpactKey, ImpactSeries]) -> int:
    found = 0
    for series in impact.values():
        found += len(series.samples)
    return found
