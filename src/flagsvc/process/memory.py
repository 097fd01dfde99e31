"""How much memory a process may take: what the machine has, what its control groups allow, what its limits allow."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

PART = 8
"""Requests under way may take so large a part of the memory there is: 1/8. As objects they take more than their bytes."""
LEAST, MOST = 8 * 1024 * 1024, 512 * 1024 * 1024
"""Bytes of requests under way where that part would be very small or very large."""
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def request_memory(largest: int, processes: int) -> int:
    """Return how many bytes of requests under way each of some processes may hold, where the largest request has so many.

    One network may hold half of it, so four of the largest fit in any case.
    """
    return max(LEAST, 4 * largest, min(MOST, memory() // PART // processes))


def memory(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Return how many bytes this process may take, as far as the system tells."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *allowed_by_groups(groups, own)]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append(soft)
    return min(found)


def allowed_by_groups(groups: Path, own: Path) -> Iterator[int]:
    """Give the limits of the control groups that the process is in, of both versions and up to the root."""
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
            yield from limit_in(place / file)
            if place in (folder, place.parent):
                break
            place = place.parent


def limit_in(file: Path) -> Iterator[int]:
    """Give the limit that a file holds, if it is there and holds one."""
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdigit():
        yield int(text)
