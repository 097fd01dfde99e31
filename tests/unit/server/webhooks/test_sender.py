"""When a failed delivery is tried again."""

from __future__ import annotations

from flagsvc.server.webhooks.sender import LONGEST_WISH_S, MOST_ATTEMPTS, PAUSES_S, SPREAD, pause_after


def test_the_pauses_grow_and_end() -> None:
    """Each pause is longer than the one before, chance adds a tenth at most, and after the last one nothing follows."""
    pauses = [pause_after(attempts, 0.0) for attempts in range(1, MOST_ATTEMPTS + 1)]
    assert pauses == [*PAUSES_S, None]
    assert list(PAUSES_S) == sorted(PAUSES_S)
    assert pause_after(1, 0.999) < PAUSES_S[0] * (1 + SPREAD)  # type: ignore[operator]


def test_a_receiver_may_ask_for_a_longer_pause() -> None:
    """Its Retry-After counts if it is longer, up to an hour; it does not add attempts."""
    assert pause_after(1, 0.0, 1.0) == PAUSES_S[0]
    assert pause_after(1, 0.0, 90.0) == 90.0
    assert pause_after(1, 0.0, 1e9) == LONGEST_WISH_S
    assert pause_after(MOST_ATTEMPTS, 0.0, 5.0) is None
