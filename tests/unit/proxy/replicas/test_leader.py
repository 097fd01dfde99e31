"""What a follower knows of its leader, from ages only."""

from __future__ import annotations

import pytest

from flagsvc.proxy.replicas.heartbeat import Heartbeat
from flagsvc.proxy.replicas.leader import LeaderView
from flagsvc.testing import FakeClock
from support.aio import asynchronous


@asynchronous
async def test_ages_are_counted_on() -> None:
    """Ages count on from the time of the heartbeat. The age of the configuration counts once the follower has it."""
    clock = FakeClock()
    view = LeaderView(clock)
    assert view.age() is None
    view.take(Heartbeat("leader", 1, age_s=2.0), 1.0)
    assert view.silence() == pytest.approx(1.0) and view.age() is None
    view.take_age()
    await clock.advance(4.0)
    assert view.silence() == pytest.approx(5.0) and view.age() == pytest.approx(7.0)
    view.take(Heartbeat("leader", 2), 0.0)
    view.take_age()
    assert view.age() == pytest.approx(7.0), "a leader that has never asked says nothing of it"


def test_a_check_of_the_leader_is_news() -> None:
    """A heartbeat between two checks is not; another leader is."""
    view = LeaderView(FakeClock())
    told = [Heartbeat("leader", 1), Heartbeat("leader", 1, age_s=3.0), Heartbeat("leader", 2), Heartbeat("other", 2)]
    assert [view.take(heartbeat, 0.0) for heartbeat in told] == [True, False, True, True]


@asynchronous
async def test_a_heartbeat_that_is_known() -> None:
    """It is as old as it is, however much time the lease has left."""
    clock = FakeClock()
    view, known = LeaderView(clock), Heartbeat("leader", 1)
    view.take(known, 0.5)
    await clock.advance(10.0)
    assert view.told_ago(known, clock.monotonic(), 1.0) == pytest.approx(10.5)
    assert view.told_ago(Heartbeat("leader", 2), clock.monotonic(), 1.0) == 1.0
    assert view.told_ago(None, clock.monotonic(), 1.0) == 1.0
