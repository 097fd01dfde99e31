"""How much memory a process may use: the memory of the machine, limits of control groups, limits of the process."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

MEMORY_SHARE = 8
"""Open requests may use 1/8 of the available memory. As objects they need more memory than their bytes."""
MIN_BYTES, MAX_BYTES = 8 * 1024 * 1024, 512 * 1024 * 1024
"""The bounds, in bytes, of the memory for open requests."""
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def default_request_memory(largest: int, processes: int) -> int:
    """Return how many bytes of open requests each of `processes` may hold, if the largest request has `largest` bytes.

    One network may use half of it. At least four of the largest requests fit in any case.
    """
    return max(MIN_BYTES, 4 * largest, min(MAX_BYTES, available_memory() // MEMORY_SHARE // processes))


def available_memory(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Return how many bytes this process may use, as far as the system reports it."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *read_group_limits(groups, own)]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append(soft)
    return min(found)


def read_group_limits(groups: Path, own: Path) -> Iterator[int]:
    """Yield the limits of the process's control groups, of both versions and up to the root."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if kinds and "memory" not in kinds.split(","):
            continue
        folder, file = (groups / "memory", "memory.limit_in_bytes") if kinds else (groups, "memory.max")
        place = folder / path.strip("/")
        while True:
            yield from read_limit(place / file)
            if place in (folder, place.parent):
                break
            place = place.parent


def read_limit(file: Path) -> Iterator[int]:
    """Yield the limit in a file, if the file exists and contains one."""
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdigit():
        yield int(text)
