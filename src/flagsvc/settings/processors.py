"""How many processors this process may use: what the system lets it run on, and what its control groups allow it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import ceil
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def processors(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Return the number of processors, rounded up, at least 1."""
    usable = getattr(os, "sched_getaffinity", None)
    there = len(usable(0)) if usable else os.cpu_count() or 1
    return max(1, min([there, *(ceil(quota) for quota in quotas(groups, own))]))


def quotas(groups: Path, own: Path) -> Iterator[float]:
    """Yield the processors that the control groups of this process allow, of both versions and up to the root."""
    for line in _read(own).splitlines():
        kinds, _, path = line.partition(":")[2].partition(":")
        if kinds and "cpu" not in kinds.split(","):
            continue
        root = groups / "cpu" if kinds else groups
        place = root / path.strip("/")
        for folder in (place, *place.parents[: len(place.parts) - len(root.parts)]):
            yield from quota_in(folder, old=bool(kinds))


def quota_in(folder: Path, *, old: bool) -> Iterator[float]:
    """Yield the quota of one group in processors, if it has one: microseconds of work divided by those of the period."""
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if old else ("cpu.max",)
    words = [word for name in names for word in _read(folder / name).split()]
    if len(words) == 2 and all(word.isdigit() and word != "0" for word in words):
        yield int(words[0]) / int(words[1])


def _read(file: Path) -> str:
    """Return what is in a file; the empty text where it cannot be read."""
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""
