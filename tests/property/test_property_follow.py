"""A proxy that follows its upstream by stream serves what a proxy serves that polls, for any course of changes and faults."""

from __future__ import annotations

import pytest

from support.follow_walk import FAULTLESS, FAULTS, FollowWalk
from support.same_inputs import examples


@pytest.mark.parametrize("marked", [True, False], ids=["the ETag tells the id", "revisions"])
async def test_both_serve_the_same_bytes(marked: bool) -> None:
    """A change over a healthy stream at once, and any faults within some polls (behaviour: Following the upstream)."""
    walk = FollowWalk(7, marked=marked)
    await walk.run(examples(600))
    assert walk.soon and walk.settled
    if examples(600) == 600:
        assert walk.done.keys() == {step.__name__ for step in (*FAULTLESS, *FAULTS)}
        assert all(walk.streamed.holder.stream.ends[reason] for reason in ("closed", "broken", "silent", "polling", "not-offered"))
