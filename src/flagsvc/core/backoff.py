"""How long to wait before asking an upstream again that failed. Pure: the random draw comes in.

Failures back off with a cap and jitter, and `Retry-After` is obeyed (behaviour: Failures).
"""

from __future__ import annotations

STEPS = 10
"""A back-off grows to this many intervals, and an upstream that refuses the token is asked once in so many."""
CEILING_S = 300.0
"""No back-off of our own is longer than this many seconds, unless the interval itself is."""
RETRY_AFTER_CEILING_S = 3600.0
"""A server that asks for a longer pause is asked again after this many seconds all the same; as a rule sooner: retryAfterLimit."""
COLD_S = 1.0
"""While nothing is served the back-off starts from this many seconds,"""
COLD_CEILING_S = 5.0
"""grows to this many,"""
COLD_RETRY_AFTER_S = 60.0
"""and a server that asks for a longer pause is asked again after this many."""
DOUBLINGS = 16


def ceiling(interval: float) -> float:
    """Return the longest back-off, in seconds, of something that normally happens every `interval` seconds."""
    return max(interval, min(STEPS * interval, CEILING_S))


def delay_after_failure(
    failures: int, draw: float, interval: float, *, retry_after: float | None = None, most: float | None = None
) -> float:
    """Return the seconds to wait after the `failures`-th failure in a row (from 1 on).

    `draw` is a random number of [0, 1), `interval` the normal pace in seconds, `retry_after` what the server asked for,
    `most` the ceiling (default `ceiling(interval)`). The wait doubles from `interval` on; the draw picks from its upper
    half. It is never under `interval`.
    """
    grown = min(interval * 2.0 ** min(failures, DOUBLINGS), ceiling(interval) if most is None else most)
    delay = max(interval, grown * (0.5 + draw / 2))
    if retry_after is None:
        return delay
    return max(delay, min(retry_after, RETRY_AFTER_CEILING_S) + draw * interval)


def delay_while_refused(draw: float, interval: float, *, retry_after: float | None = None) -> float:
    """Return the seconds to wait while the upstream refuses the token: slow from the first time on, for ever, never giving up."""
    return delay_after_failure(DOUBLINGS, draw, interval, retry_after=retry_after)


def delay_while_cold(
    failures: int, draw: float, interval: float, *, retry_after: float | None = None, most: float | None = None
) -> float:
    """Return the seconds to wait while there is nothing to serve: a few at most, for whichever of the two started first.

    That holds for a refused token too, which may be made a moment later. The arguments are those of `delay_after_failure`.
    """
    bound = min(ceiling(interval) if most is None else most, COLD_CEILING_S)
    wish = None if retry_after is None else min(retry_after, COLD_RETRY_AFTER_S)
    return delay_after_failure(failures, draw, min(interval, COLD_S), retry_after=wish, most=bound)
