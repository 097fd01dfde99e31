"""What a process and its descendants have used: CPU and memory, as Linux counts them."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
SCHEDULED = 2
"""Which of a process's CPU clocks: the scheduler's, in nanoseconds, user and system together (Linux: CPUCLOCK_SCHED)."""


def fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the name, of which the first is the state."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """Return a process and its living descendants."""
    parents: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended since
                parents.setdefault(int(fields(int(entry.name))[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """Return the CPU time of a process tree in seconds, those included that have ended and been waited for.

    What /proc/PID/stat shows of a living process in hundredths of a second, its CPU clock has in nanoseconds.
    """
    total = 0.0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            total += time.clock_gettime((~pid << 3) | SCHEDULED)
            total += sum(map(int, fields(pid)[13:15])) / TICKS
    return total


@dataclass(frozen=True)
class Memory:
    """Megabytes of a process tree: resident, and proportional, which counts what several share only once."""

    rss: float
    pss: float


def memory(root: int) -> Memory:
    """Return the memory of a process tree."""
    sums = {"Rss": 0, "Pss": 0}
    for pid in tree(root):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in sums:
                sums[name] += int(rest.split()[0])
    return Memory(sums["Rss"] / 1024, sums["Pss"] / 1024)
