"""When a replica does what."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.replicas.schedule import PAUSE_LEASES, RELEASED_S, Schedule
from flagsvc.testing import FakeClock, turns
from support.aio import asynchronous

LEASE_S = 10.0


def schedule(clock: FakeClock, drawn: float = 0.5) -> Schedule:
    """Return the schedule of a replica that always draws the same number."""
    return Schedule(clock, lambda: drawn, LEASE_S, 4.0)


@pytest.mark.parametrize(("drawn", "seconds"), [(0.0, 1.8), (0.5, 2.0), (1.0, 2.2)])
@asynchronous
async def test_heartbeats_come_five_times_in_a_lease(drawn: float, seconds: float) -> None:
    """More or less: replicas that start together do not stay together."""
    clock = FakeClock()
    made = schedule(clock, drawn)
    made.next_heartbeat()
    assert made.left() == pytest.approx(seconds)
    await clock.advance(seconds + 0.01)
    assert made.left() == 0.0


@asynchronous
async def test_silence() -> None:
    """After more than one heartbeat interval the lease is checked.

    After the time of three leases the leader is followed no longer.
    """
    made = schedule(FakeClock())
    assert [made.silent(seconds) for seconds in (3.1, 3.3)] == [False, True]
    assert [made.gone(seconds) for seconds in (29.9, 30.0)] == [False, True]


@asynchronous
async def test_a_subscription_that_brings_nothing() -> None:
    """It may be broken after four heartbeats."""
    made = schedule(FakeClock())
    made.received = made.now()
    assert [made.deaf(made.received + seconds) for seconds in (7.9, 8.1)] == [False, True]


@asynchronous
async def test_a_rest() -> None:
    """A pause ends after its time, or earlier if no other replica has the lease."""
    clock = FakeClock()
    made = schedule(clock)
    assert not made.is_paused(0.0)
    made.rest()
    assert [made.is_paused(seconds) for seconds in (1.9 * LEASE_S, 2.1 * LEASE_S)] == [True, False]
    await clock.advance(PAUSE_LEASES * LEASE_S)
    assert not made.is_paused(0.0)


@asynchronous
async def test_a_moment_of_its_own() -> None:
    """Each replica asks the upstream at another one, and looks at a lease that was given back."""
    clock = FakeClock()
    made = schedule(clock, 0.25)
    made.spread()
    assert made.asks_at == pytest.approx(made.now() + 1.0)
    waiting = asyncio.create_task(made.pause_after_release())
    await turns()
    assert clock.sleeping == [pytest.approx(RELEASED_S / 4)] and not waiting.done()
    await clock.advance(RELEASED_S)
    await waiting
