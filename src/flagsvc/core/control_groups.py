"""What the control groups of this process allow it: processors and memory, of both versions and up to the root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import ceil
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def processors(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Return how many processors this process may use, rounded up, at least 1: by the system and by its control groups."""
    usable = getattr(os, "sched_getaffinity", None)
    there = len(usable(0)) if usable else os.cpu_count() or 1
    return max(1, min([there, *(ceil(quota) for quota in _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """Yield the processors that groups allow: the microseconds of work divided by those of the period."""
    for folder, is_old in _folders("cpu", groups, own):
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if is_old else ("cpu.max",)
        words = [word for name in names for word in _read(folder / name).split()]
        if len(words) == 2 and all(word.isdigit() and word != "0" for word in words):
            yield int(words[0]) / int(words[1])


def memory_limits(groups: Path = GROUPS, own: Path = OWN) -> Iterator[int]:
    """Yield the bytes of memory that groups allow, of each group that has a limit."""
    for folder, is_old in _folders("memory", groups, own):
        text = _read(folder / ("memory.limit_in_bytes" if is_old else "memory.max")).strip()
        if text.isdigit():
            yield int(text)


def _folders(controller: str, groups: Path, own: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the folder of each group that this process is in and that has a controller, and whether it is of version 1."""
    for line in _read(own).splitlines():
        kinds, _, path = line.partition(":")[2].partition(":")
        if kinds and controller not in kinds.split(","):
            continue
        root = groups / controller if kinds else groups
        place = root / path.strip("/")
        for folder in (place, *place.parents[: len(place.parts) - len(root.parts)]):
            yield folder, bool(kinds)


def _read(file: Path) -> str:
    """Return what is in a file; the empty text where it cannot be read."""
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""
