"""How often a limit was reached."""

from __future__ import annotations

import pytest

from flagsvc.http.reached_limits import LIMITS, VALUE, Reached


def test_limits_reached_are_counted_by_their_words() -> None:
    """Every limit is there from the start, with 0, and nothing else can be counted."""
    reached = Reached()
    assert reached.counts == dict.fromkeys(LIMITS, 0)
    reached.add(VALUE)
    reached.add(VALUE)
    assert reached.counts[VALUE] == 2 and sum(reached.counts.values()) == 2
    with pytest.raises(KeyError):
        reached.add("something else")
    assert len(set(LIMITS)) == len(LIMITS)
