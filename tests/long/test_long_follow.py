"""A long walk of a flag server with streams, and of two proxies that follow it by stream and by polls.

Both serve the same bytes after every change over a healthy stream, and after any faults. `make test-long
ARGS=tests/long/test_long_follow.py`; FOLLOW_STEPS=100000 is the number of steps of all walks, FOLLOW_SEED=1 the first seed.
The figures are printed with `-s`.
"""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from support.follow_walk import FollowWalk

pytestmark = pytest.mark.long

STEPS = int(os.environ.get("FOLLOW_STEPS", "100000"))
SEED = int(os.environ.get("FOLLOW_SEED", "1"))
WALKS = 10


@pytest.mark.parametrize("marked", [True, False], ids=["the ETag tells the id", "revisions"])
def test_a_long_walk(marked: bool) -> None:
    """Ten walks with seeds of their own."""
    began, soon, settled = time.monotonic(), 0, 0
    for seed in range(SEED, SEED + WALKS):
        walk = FollowWalk(seed, marked=marked)
        asyncio.run(walk.run(STEPS // WALKS // 2))
        soon, settled = soon + walk.soon, settled + walk.settled
        notes = walk.streamed.holder.stream
        print(f"\nseed {seed}: {notes.opened} streams, {sum(notes.events.values())} events, ends {notes.ends};", end=" ")
        print(f"{walk.streamed_upstream.polls} polls beside {walk.polled_upstream.polls}; {dict(walk.done)}", end="")
    print(f"\n{STEPS // 2} steps in {time.monotonic() - began:.0f} s: compared {soon} times at once and {settled} times later")
