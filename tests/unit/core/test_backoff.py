"""The delay after a failure."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flagsvc.core.background import RETRY_AFTER_CEILING_S, delay_after_failure, delay_while_cold, delay_while_refused, longest_delay

DRAWS = st.floats(0, 1, exclude_max=True)
INTERVALS = st.floats(0.001, 10_000)
FAILURES = st.integers(1, 10_000)
LARGE_DRAW = 0.999
"""Nearly the largest draw."""
LARGE_SHARE = 0.5 + LARGE_DRAW / 2
"""The share of the full delay that this draw gives."""


@given(FAILURES, DRAWS, INTERVALS)
def test_a_back_off_is_never_shorter_than_the_interval_and_never_over_the_ceiling(
    failures: int, draw: float, interval: float
) -> None:
    """For every draw the delay is at least the interval and at most the ceiling."""
    assert interval <= delay_after_failure(failures, draw, interval) <= longest_delay(interval)


@given(FAILURES, DRAWS, INTERVALS, st.floats(0, 1e12))
def test_retry_after_is_obeyed_up_to_its_ceiling(failures: int, draw: float, interval: float, wish: float) -> None:
    """The wait is at least what the server requests, up to an hour."""
    delay = delay_after_failure(failures, draw, interval, retry_after=wish)
    assert delay >= min(wish, RETRY_AFTER_CEILING_S)
    assert delay >= delay_after_failure(failures, draw, interval)
    assert delay <= max(longest_delay(interval), min(wish, RETRY_AFTER_CEILING_S) + interval)


@given(FAILURES, INTERVALS)
@example(1, 299.9)
@example(1, LARGE_SHARE * 300)
def test_the_draw_spreads_instances(failures: int, interval: float) -> None:
    """Two instances with different draws wait differently, unless the interval is close to `longest_delay`."""
    early, late = (delay_after_failure(failures, draw, interval) for draw in (0.0, LARGE_DRAW))
    assert early < late or interval >= LARGE_SHARE * longest_delay(interval)


def test_the_wait_doubles() -> None:
    """With the largest draw, the waits are two intervals, four, eight, then the longest delay of ten, or a given ceiling."""
    delays = [delay_after_failure(failures, 1.0, 5.0) for failures in (1, 2, 3, 4, 40)]
    assert delays == [10.0, 20.0, 40.0, 50.0, 50.0]
    assert delay_after_failure(30, 1.0, 0.5, ceiling=2.0) == 2.0


@pytest.mark.parametrize(("interval", "most"), [(0.5, 5.0), (5.0, 50.0), (60.0, 300.0), (3600.0, 3600.0)])
def test_the_ceiling_follows_the_interval(interval: float, most: float) -> None:
    """The ceiling is ten intervals, at most five minutes, but never below one interval."""
    assert longest_delay(interval) == most


@given(DRAWS, INTERVALS)
def test_a_refused_token_is_retried_slowly(draw: float, interval: float) -> None:
    """From the first refusal, the wait is at least half of `longest_delay`."""
    assert longest_delay(interval) / 2 <= delay_while_refused(draw, interval) <= longest_delay(interval)
    assert delay_while_refused(draw, interval, retry_after=3000) >= 3000


@given(FAILURES, DRAWS, INTERVALS, st.none() | st.floats(0, 1e12))
def test_a_cold_proxy_asks_within_seconds(failures: int, draw: float, interval: float, wish: float | None) -> None:
    """This holds for any number of failures and any interval. Only a Retry-After can raise it, to about a minute."""
    delay = delay_while_cold(failures, draw, interval, retry_after=wish)
    assert min(interval, 1.0) <= delay <= 5.0 or (wish is not None and delay <= 61.0)
    assert wish is None or delay >= min(wish, 60.0)


def test_a_cold_proxy_begins_with_a_second() -> None:
    """The delay starts at one to two seconds and ends at five at most. A short interval has shorter delays."""
    assert [delay_while_cold(failures, 1.0, 30.0) for failures in (1, 2, 3, 40)] == [2.0, 4.0, 5.0, 5.0]
    assert [delay_while_cold(failures, 0.0, 30.0) for failures in (1, 2, 3, 40)] == [1.0, 2.0, 2.5, 2.5]
    assert [delay_while_cold(failures, 1.0, 0.1) for failures in (1, 40)] == [0.2, 1.0]
    assert delay_while_cold(40, 1.0, 0.5, ceiling=2.0) == 2.0
