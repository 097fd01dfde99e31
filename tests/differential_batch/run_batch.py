"""Compare the batch operations with the real server's by hand: `python tests/differential_batch/run_batch.py --rounds 500`."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

from batch_compare import EXCLUSIONS  # noqa: E402 - the path is set above
from batch_twins import compare, our_server  # noqa: E402 - the path is set above
from real_batch import real_server  # noqa: E402 - the path is set above

from support import processes  # noqa: E402 - the path is set above

SHOWN = 5
TOLD_EVERY = 100


def main() -> int:
    """Run, print the figures, and return 1 when an answer differed or an exclusion did not occur."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="states to begin with; each has up to 12 answers")
    parser.add_argument("--seed", type=int, default=1, help="states and requests follow from it")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite", help="that ours is on")
    parser.add_argument("--peer", choices=("server", "server-8"), default="server", help="7.5.1, or 8.2.0")
    options = parser.parse_args()
    started = time.monotonic()
    with ExitStack() as made:
        folder = made.enter_context(processes.scratch())
        real = made.enter_context(real_server(options.peer))
        place = (
            f"sqlite:///{folder}/flags.db"
            if options.database == "sqlite"
            else made.enter_context(processes.postgresql())
        )
        ours = made.enter_context(our_server(place))
        tally = compare(real, ours, options.seed, options.rounds, tell)
    print(f"{tally.answers} answers in {time.monotonic() - started:.0f} s, {len(tally.mismatches)} mismatches")
    for what, counts in (("answers", tally.statuses), ("excluded", tally.excluded), ("law", tally.law)):
        print(what, *(f"\n  {count:6} {name}" for name, count in sorted(counts.items())))
    for mismatch in tally.mismatches[:SHOWN]:
        print(mismatch)
    absent = [row.name for row in EXCLUSIONS if not tally.excluded[row.name]]
    print("exclusions that did not occur:", absent or "none")
    return 1 if tally.mismatches or absent else 0


def tell(number: int) -> None:
    """Say how far it is."""
    if number and number % TOLD_EVERY == 0:
        print(f"{number} rounds", flush=True)


if __name__ == "__main__":
    sys.exit(main())
