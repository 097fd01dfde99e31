"""The limit on tries to sign in: how many pass, from where, and how long the others wait."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.http.reached_limits import SIGN_IN, Reached
from flagsvc.pages.sign_in_tries import ALL_TRIES, MAX_NETWORKS, NETWORK_TRIES, SignInTries, describe_wait
from flagsvc.testing import FakeClock


def make() -> tuple[SignInTries, FakeClock, Reached]:
    """Return new tries, with their clock and counters."""
    clock, reached = FakeClock(), Reached()
    return SignInTries(clock, reached), clock, reached


def test_a_network_has_some_tries_in_a_minute() -> None:
    """A further one says how long to wait, and is counted. After that time one more passes. Other addresses do not wait."""
    tries, clock, reached = make()
    assert [tries.take("192.0.2.1") for _ in range(NETWORK_TRIES)] == [0] * NETWORK_TRIES
    assert tries.take("192.0.2.1") == 6 and reached.counts[SIGN_IN] == 1
    assert tries.take("192.0.2.2") == 0
    asyncio.run(clock.advance(6.0))
    assert [tries.take("192.0.2.1") for _ in range(2)] == [0, 6]


def test_ipv6_counts_by_its_network() -> None:
    """A caller has 64 bits of addresses, and so one limit."""
    tries, _, _ = make()
    assert not any(tries.take(f"2001:db8::{number}") for number in range(NETWORK_TRIES))
    assert tries.take("2001:db8::ffff:1") > 0 and tries.take("2001:db8:0:1::1") == 0


@pytest.mark.parametrize("address", ["192.0.2.1", None])
def test_a_right_try_does_not_count(address: str | None) -> None:
    """People behind one address, or over a Unix socket, which has none, sign in as often as they want to."""
    tries, _, reached = make()
    for _ in range(5 * ALL_TRIES):
        assert tries.take(address) == 0
        tries.give_back(address)
    assert not reached.counts[SIGN_IN]


def exhausted() -> tuple[SignInTries, FakeClock]:
    """Return tries of which one caller with many networks has used all; 10.0.0.1 has used one of its own."""
    tries, clock, _ = make()
    assert not any(tries.take(f"10.0.{number >> 8}.{number & 255}") for number in range(ALL_TRIES))
    return tries, clock


def test_all_networks_together_have_a_limit() -> None:
    """Many addresses with wrong tries do not help. Without an address only this limit holds."""
    tries, _ = exhausted()
    assert tries.take("10.0.0.1") == 1 and tries.take(None) == 1


def test_nobody_locks_out_everybody() -> None:
    """A network without recent wrong tries is not refused because others have used all, and then counts like any other."""
    tries, clock = exhausted()
    assert [tries.take("192.0.2.1") for _ in range(2)] == [0, 1]
    for _ in range(20):
        asyncio.run(clock.advance(6.5))
        assert tries.take("192.0.2.1") == 0
        while tries.take(None) == 0:
            pass


def test_what_all_refuse_costs_the_network_nothing() -> None:
    """A network keeps its own tries while all together are refused."""
    tries, clock = exhausted()
    assert {tries.take("10.0.0.1") for _ in range(3 * NETWORK_TRIES)} == {1}
    asyncio.run(clock.advance(2.0))
    assert [tries.take("10.0.0.1") for _ in range(NETWORK_TRIES - 1)] == [0] * (NETWORK_TRIES - 1)


def test_the_memory_is_bounded() -> None:
    """Any number of addresses leaves at most two generations of networks."""
    tries, _, _ = make()
    for number in range(3 * MAX_NETWORKS):
        tries.take(f"2001:db8:{number >> 16:x}:{number & 65535:x}::1")
    assert len(tries._networks.young) <= MAX_NETWORKS and len(tries._networks.old) <= MAX_NETWORKS


def test_the_words() -> None:
    """They say how long to wait."""
    assert describe_wait(1).endswith("in 1 second.") and describe_wait(2).endswith("in 2 seconds.")
