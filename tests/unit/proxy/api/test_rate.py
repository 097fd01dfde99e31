"""Rate limits: which requests pass, by key and by address."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.call import Call
from flagsvc.http.keys import KeyCheck, KeySet
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import KEY_RATE
from flagsvc.http.token_buckets import network_of
from flagsvc.proxy.api.rate import RateLimits, make_rate_limits
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.testing import FakeClock
from support.serving import attempt, request


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:c000:201", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:DB8::1", "2001:db8:0:0:1::", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("3130:2e30:2e30:2e31::", "10.0.0.1", False),
        ("::1", "::2", True),
        ("no:address", "no:address", True),
    ],
)
def test_networks(one: str, other: str, same: bool) -> None:
    """IPv4 addresses are themselves, however they are written; of IPv6 the first 64 bits count, which one caller has."""
    assert (network_of(one) == network_of(other)) is same


def rates(**settings: object) -> RateLimits:
    made = make_rate_limits(ServiceSettings(client_keys=("k",), **settings), FakeClock())  # type: ignore[arg-type]
    assert made is not None
    return made


def told(limits: RateLimits, key: bytes | None = b"k", peer: str = "192.0.2.1") -> object:
    """Return what a request is told: None if it passes, or the error."""
    call = Call(request(b"GET", b"/proxy"))
    call.request.peer = peer
    call.key = key
    return attempt(limits.admit, call, KeyCheck(KeySet(["k", "l"])))


def ask(limits: RateLimits, key: bytes | None = b"k", peer: str = "192.0.2.1") -> object:
    """Return what becomes of a request: None, or status, limit and seconds to wait."""
    found = told(limits, key, peer)
    return (found.status, found.limit, found.retry) if isinstance(found, HttpError) else found


def test_without_limits_there_is_nothing() -> None:
    """Without a rate there are no limits, with any burst."""
    assert make_rate_limits(ServiceSettings(client_keys=("k",), rate_limit_burst=5), FakeClock()) is None


def test_keys() -> None:
    """Each key has its own rate, from any address. A wrong key takes no token and makes no bucket."""
    limits = rates(rate_limit_key=2)
    assert [ask(limits), ask(limits, b" k\t", "192.0.2.2")] == [None, None]
    assert ask(limits) == (429, KEY_RATE, 1)
    assert ask(limits, b"l") is None
    assert [ask(limits, b"wrong"), ask(limits, None)] == [(401, "", 0)] * 2
    assert limits.keys is not None and len(limits.keys.young) == 2
    assert {len(name) for name in limits.keys.young} == {32}, "the keys themselves are not kept"


@pytest.mark.parametrize(("counted", "whose"), [("key", "with this key"), ("address", "from this address")])
def test_whose_limit_it_is(counted: str, whose: str) -> None:
    """The message of a 429 says whose requests are too many."""
    limits = rates(**{f"rate_limit_{counted}": 1})
    assert told(limits) is None
    refused = told(limits)
    assert isinstance(refused, HttpError) and refused.message == f"too many requests {whose}"


def test_without_an_address() -> None:
    """Callers on a Unix socket have no address, so no address limit applies to them."""
    limits = rates(rate_limit_address=1)
    assert [ask(limits, peer="") for _ in range(3)] == [None] * 3


@given(st.integers(1, 100), st.integers(0, 100))
def test_the_burst_is_a_second_where_none_is_given(rate: int, burst: int) -> None:
    """Without a burst it is the rate of one second. The first request always passes."""
    limits = rates(rate_limit_key=rate, rate_limit_burst=burst)
    passed = sum(ask(limits) is None for _ in range(210))
    assert passed == (burst or rate)
    assert limits.keys is not None
    assert math.isclose(limits.keys.rate, rate)
