"""Limits on repeated log lines."""

from __future__ import annotations

import asyncio

from flagsvc.core.throttle import MAX_REMEMBERED, Throttle
from flagsvc.testing import FakeClock


def test_once_for_each_name() -> None:
    """Without a period each name is allowed only once."""
    clock = FakeClock()
    sparing = Throttle(clock, None)
    assert [sparing.allows(name) for name in "aba"] == [True, True, False]
    asyncio.run(clock.advance(10**9))
    assert not sparing.allows("a")


def test_once_in_a_while() -> None:
    """With a period, a name is allowed again after the period."""
    clock = FakeClock()
    sparing = Throttle(clock, 60)
    assert sparing.allows("a")
    asyncio.run(clock.advance(59))
    assert not sparing.allows("a")
    asyncio.run(clock.advance(1))
    assert sparing.allows("a")


def test_what_is_remembered_is_bounded() -> None:
    """Beyond the limit, new names are not allowed. Known names still are."""
    sparing = Throttle(FakeClock(), 0)
    assert sum(sparing.allows(f"name-{number}") for number in range(MAX_REMEMBERED + 10)) == MAX_REMEMBERED
    assert sparing.allows("name-0")
