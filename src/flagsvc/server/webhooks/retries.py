"""When a delivery that failed is tried again, and when it is given up. Pure."""

from __future__ import annotations

PAUSES_S = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0)
"""Seconds after the first, second, … failed attempt."""
MOST_ATTEMPTS = len(PAUSES_S) + 1
"""The most attempts of a delivery, within about four hours. Attempts that end with the server count, too."""
LONGEST_WISH_S = 3600.0
"""The most seconds that a Retry-After of the receiver counts for."""
SPREAD = 0.1
"""The part of a pause that chance adds, so that many deliveries do not come at once."""


def pause_after(attempts: int, chance: float, wish: float | None = None) -> float | None:
    """Return the seconds after which a delivery is due again; None if that was its last attempt.

    `attempts` counts those made, `chance` is a random number in [0, 1), and `wish` the seconds of a Retry-After.
    """
    if attempts >= MOST_ATTEMPTS:
        return None
    pause = max(PAUSES_S[attempts - 1], min(wish or 0.0, LONGEST_WISH_S))
    return pause * (1 + SPREAD * chance)
