"""A hundred reloads under load with one, two and four workers: several environments, and a single one.

No request of a lasting key fails, no answer has foreign flags, revoked keys open nothing after the log line of the reload, and
processes do not grow. `make test-long`; RELOADS=100 is the number of reloads of each run, RELOAD_SEED=1 the seed of the walk. The
figures are printed with `-s`.

Environments that have ended are garbage in cycles, and a process scans all objects for garbage after ten minutes. The processes of
these tests do so after SCAN_S=5 seconds, so that they show what is not garbage; SCAN_S=0 leaves them as they are.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from support.reload_callers import Size
from support.reload_walk import ReloadWalk, walking

pytestmark = pytest.mark.long

RELOADS = int(os.environ.get("RELOADS", "100"))
SEED = int(os.environ.get("RELOAD_SEED", "1"))
POOL = 1 + min(32, (os.cpu_count() or 1) + 4)
"""The most threads of a process: the thread of the loop, and the pool for files and compiling."""
SCAN_S = float(os.environ.get("SCAN_S", "5"))
WARM_UP, GROWTH = 1.25, 1.05
"""By how much the memory of a process may grow from the end of the first quarter to the end, and from the half to the end.

In the first half, the threads start that a process has for files and compiling, and each takes memory of its own.
"""


@pytest.mark.parametrize("single", [False, True], ids=["several environments", "a single environment"])
@pytest.mark.parametrize("number", [1, 2, 4], ids=["one process", "two workers", "four workers"])
def test_reloads(number: int, single: bool, tmp_path: Path) -> None:
    """Keys, options, tokens, upstreams, files that are refused: of ten environments that come and go, or of one without a name."""
    with walking(tmp_path, seed=SEED, number=number, single=single, scan_s=SCAN_S) as walk:
        walk_far(walk)


def walk_far(walk: ReloadWalk) -> None:
    """Reload so often, print the figures, and compare the processes after the first quarter with those at the end."""
    began = time.monotonic()
    quarters = walk.run(RELOADS)
    answered = sum(caller.answered for caller in walk.callers)
    print(f"\n{sum(walk.done.values())} reloads in {time.monotonic() - began:.0f} s with {walk.number} worker(s):", end=" ")
    print(f"{answered} answers, {len(walk.wrong())} wrong; {dict(walk.done)}; {dict(walk.seen)}")
    for at, sizes in enumerate(quarters, 1):
        print(f"  quarter {at}: {', '.join(map(words, sizes))}")
    for early, half, late in zip(quarters[0], quarters[1], quarters[-1], strict=True):
        assert late.memory <= min(WARM_UP * early.memory, GROWTH * half.memory)
        assert late.files <= early.files and late.threads <= max(early.threads, POOL)


def words(size: Size) -> str:
    return f"{size.memory / 2**20:.1f} MB, {size.files} files, {size.threads} threads"
