"""How long to wait before the next request to an upstream that failed. Pure: the caller passes the random number.

Failures back off with a cap and jitter, and `Retry-After` is obeyed (behaviour: Failures).
"""

from __future__ import annotations

STEPS = 10
"""A back-off grows to this many intervals. An upstream that refuses the token is asked after half to all of them."""
CEILING_S = 300.0
"""The longest back-off in seconds, unless the interval itself is longer."""
RETRY_AFTER_CEILING_S = 3600.0
"""The most seconds that a Retry-After of the server counts for. The option retryAfterLimit usually sets a lower limit."""
COLD_S = 1.0
"""The first back-off in seconds while there is no configuration to serve."""
COLD_CEILING_S = 5.0
"""The longest back-off in seconds while there is no configuration to serve."""
COLD_RETRY_AFTER_S = 60.0
"""The most seconds that a Retry-After counts for while there is no configuration to serve."""
MAX_DOUBLINGS = 16


def longest_delay(interval: float) -> float:
    """Return the longest back-off, in seconds, of an action that normally happens every `interval` seconds."""
    return max(interval, min(STEPS * interval, CEILING_S))


def delay_after_failure(
    failures: int, jitter: float, interval: float, *, retry_after: float | None = None, ceiling: float | None = None
) -> float:
    """Return the seconds to wait after the `failures`-th failure in a row (counted from 1).

    `jitter` is a random number in [0, 1). `interval` is the normal period in seconds, `retry_after` the server's Retry-After, and
    `ceiling` the longest delay (default `longest_delay(interval)`). The delay doubles with each failure, starting from
    `interval`; the jitter picks a value from its upper half. It is never below `interval`.
    """
    grown = min(interval * 2.0 ** min(failures, MAX_DOUBLINGS), longest_delay(interval) if ceiling is None else ceiling)
    delay = max(interval, grown * (0.5 + jitter / 2))
    if retry_after is None:
        return delay
    return max(delay, min(retry_after, RETRY_AFTER_CEILING_S) + jitter * interval)


def delay_while_refused(jitter: float, interval: float, *, retry_after: float | None = None) -> float:
    """Return the seconds to wait while the upstream refuses the token: near the ceiling from the first refusal on."""
    return delay_after_failure(MAX_DOUBLINGS, jitter, interval, retry_after=retry_after)


def delay_while_cold(
    failures: int, jitter: float, interval: float, *, retry_after: float | None = None, ceiling: float | None = None
) -> float:
    """Return the seconds to wait while there is no configuration to serve: a few at most.

    The delay is short because proxy and upstream may start in either order. A refused token gets the same delay, because the token
    may be created a moment later. The arguments are those of `delay_after_failure`.
    """
    lower_ceiling = min(longest_delay(interval) if ceiling is None else ceiling, COLD_CEILING_S)
    wish = None if retry_after is None else min(retry_after, COLD_RETRY_AFTER_S)
    return delay_after_failure(failures, jitter, min(interval, COLD_S), retry_after=wish, ceiling=lower_ceiling)
