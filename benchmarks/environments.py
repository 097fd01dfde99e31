"""What a further environment costs: start, memory, and CPU without a request.

`python benchmarks/environments.py [--idle 60] [--flags 100,1000] [--environments 1,2,10,50] [--workers 1,2]` starts a proxy for
each case, waits, and prints a table for each number of workers. What a request costs with several environments is a part of
`benchmarks/proxy.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

from harness import procs, servers  # noqa: E402

SETTLE_S = 3.0
"""Seconds between the start and the measurement: what the start has left to do."""
HEAD = "| flags | environments | start, s | RSS, MB | PSS, MB | idle CPU, ms a second |\n|--:|--:|--:|--:|--:|--:|"


class Case(NamedTuple):
    """One proxy: its processes that answer, the flags of each environment, and its environments."""

    workers: int
    flags: int
    environments: int


class Cost(NamedTuple):
    """What a proxy took: seconds to the first answer, MB, and milliseconds of CPU in each idle second."""

    start_s: float
    rss_mb: float
    pss_mb: float
    idle_ms: float


def measure(case: Case, idle_s: float) -> Cost:
    """Start a proxy, leave it alone for `idle_s` seconds, and return what it took."""
    arguments = () if case.workers == 1 else ("--workers", str(case.workers))
    several = servers.ours_divided("ours", case.environments, *arguments)
    start = servers.ours("ours", *arguments) if case.environments == 1 else several
    with servers.upstream() as upstream, start(f"{upstream}/{case.flags}") as server:
        time.sleep(SETTLE_S)
        before = procs.cpu_seconds(server.pid)
        time.sleep(idle_s)
        used, memory = procs.cpu_seconds(server.pid) - before, procs.memory(server.pid)
    return Cost(server.start_s, memory.rss, memory.pss, 1000 * used / idle_s)


def rows(cases: Iterable[Case], idle_s: float) -> Iterator[str]:
    """Yield a row for each case, as soon as it is measured."""
    for case in cases:
        cost = measure(case, idle_s)
        figures = f"{cost.start_s:.2f} | {cost.rss_mb:.1f} | {cost.pss_mb:.1f} | {cost.idle_ms:.1f}"
        yield f"| {case.flags:,} | {case.environments} | {figures} |"


def numbers(text: str) -> list[int]:
    """Return the numbers of a list with commas."""
    return [int(each) for each in text.split(",")]


def main() -> int:
    """Read the options, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", type=float, default=60.0, help="seconds of each measurement")
    parser.add_argument("--flags", type=numbers, default=[100, 1000])
    parser.add_argument("--environments", type=numbers, default=[1, 2, 10, 50])
    parser.add_argument("--workers", type=numbers, default=[1, 2])
    args = parser.parse_args()
    for workers in args.workers:
        print(f"\nWorkers: {workers}\n\n{HEAD}")
        cases = (Case(workers, flags, number) for flags in args.flags for number in args.environments)
        for row in rows(cases, args.idle):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
