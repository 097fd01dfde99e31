"""A short flood of random tokens, from one address and from many; the long one is `tests/long/test_long_tokens.py`."""

from __future__ import annotations

import pytest

from support.flooded_tokens import BUDGET, flooded

SECONDS, RATE = 10.0, 200.0
QUESTIONS_RATE = 30.0
TRIES = 20
"""The most tries of a new token until it is let in; each waits as long as it is told."""


@pytest.mark.parametrize("many", [False, True], ids=["one address", "many addresses"])
def test_a_flood_of_tokens(many: bool) -> None:
    """The upstream gets no more questions than the option allows; known callers are all answered; new tokens get in."""
    figures = flooded(SECONDS, RATE, many=many, quiet_s=0.5)
    assert figures.statuses == {200} and len(figures.during) > 100
    assert set(figures.flood["statuses"]) <= {"401", "503"} and not figures.flood["failed"]
    assert sum(figures.flood["statuses"].values()) == figures.flood["sent"] > 0, (
        "every request of the flood is answered"
    )
    assert 0 < figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    assert figures.newcomers and max(tries for tries, _ in figures.newcomers) <= TRIES


@pytest.mark.parametrize("many", [False, True], ids=["one address", "many addresses"])
def test_a_flood_of_questions_about_tokens(many: bool) -> None:
    """Upstream and workers do not suffer from callers who ask about a hundred random tokens at once; known ones are answered."""
    figures = flooded(SECONDS, QUESTIONS_RATE, many=many, quiet_s=1.0, number=2, route="validate")
    assert figures.statuses == {200} and len(figures.during) > 100 and not figures.dead
    assert set(figures.flood["statuses"]) <= {"200", "503"} and not figures.flood["failed"]
    assert 0 < figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    assert figures.newcomers and max(tries for tries, _ in figures.newcomers) <= TRIES
