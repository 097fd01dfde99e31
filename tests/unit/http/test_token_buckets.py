"""Token buckets: what they admit, and their memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.token_buckets import TokenBuckets


def taken(buckets: TokenBuckets, name: bytes, moments: list[float]) -> list[bool]:
    """Return for each moment whether there was a token."""
    return [buckets.take_token(name, moment) == 0.0 for moment in moments]


def test_how_long_to_wait() -> None:
    """Who gets no token is told the seconds until there is one."""
    buckets = TokenBuckets(2.0, 3.0)
    assert [buckets.take_token(b"a", 10.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 0.5]


@given(st.integers(1, 5), st.integers(1, 5), st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.floats(0, 3)), max_size=60))
def test_a_bucket_that_was_forgotten_was_full(rate: int, burst: int, steps: list[tuple[bytes, float]]) -> None:
    """Generations change nothing: with every bucket kept for ever the same requests pass."""
    buckets = TokenBuckets(float(rate), float(burst))
    slow: dict[bytes, tuple[float, float]] = {}
    now = 5.0
    for name, pause in steps:
        now += pause
        tokens, at = slow.get(name, (float(burst), now))
        tokens = min(float(burst), tokens + (now - at) * rate)
        passes = tokens >= 1.0
        slow[name] = (tokens - 1.0 if passes else tokens, now)
        assert (buckets.take_token(name, now) == 0.0) is passes


def test_memory_is_bounded() -> None:
    """For any number of names, at most two generations of buckets are kept."""
    buckets = TokenBuckets(1.0, 1000.0, max_buckets=50)
    for number in range(1000):
        assert buckets.take_token(b"%d" % number, 1.0) == 0.0
        assert len(buckets.young) <= 50 and len(buckets.old) <= 50


def test_what_is_not_asked_for_is_forgotten() -> None:
    """A bucket is forgotten after twice the time to fill it."""
    buckets = TokenBuckets(1.0, 2.0)
    buckets.take_token(b"a", 1.0)
    for moment in (4.0, 7.0):
        buckets.take_token(b"b%d" % moment, moment)
    assert b"a" not in buckets.young and b"a" not in buckets.old


def test_a_token_that_is_given_back_can_be_taken_again() -> None:
    """A bucket never has more than its burst, and an unknown name changes nothing."""
    buckets = TokenBuckets(1.0, 2.0)
    assert taken(buckets, b"a", [1.0, 1.0, 1.0]) == [True, True, False]
    buckets.give_back(b"a")
    assert taken(buckets, b"a", [1.0, 1.0]) == [True, False]
    for _ in range(5):
        buckets.give_back(b"a")
    assert taken(buckets, b"a", [1.0] * 3) == [True, True, False]
    buckets.give_back(b"b")
    assert b"b" not in buckets.young and b"b" not in buckets.old
