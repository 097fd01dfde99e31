"""What a change of variants does to users: by arithmetic, and as the engine draws."""

from __future__ import annotations

import pytest

from flagsvc.engine.model import VariantSpec
from flagsvc.reasons.variant_impact import Draw, range_words, variant_impact


def draw(sticks_to: str = "userId", group: str = "g", **weights: int) -> Draw:
    """Return the draw of variants with these weights."""
    return Draw([VariantSpec(name, weight, sticks_to, None, []) for name, weight in weights.items()], group)


HALVES = draw(a=500, b=500)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (HALVES, HALVES, []),
        (HALVES, draw(a=400, b=600), ["10 % of the users change from a to b."]),
        (
            HALVES,
            draw(b=500, c=500),
            ["50 % of the users change from a to b.", "50 % of the users change from b to c."],
        ),
        (HALVES, draw(group="h", a=500, b=500), ["All users are drawn again: 50 % of them get another variant."]),
        (HALVES, draw("company", a=900, b=100), ["All users are drawn again: 50 % of them get another variant."]),
        (
            HALVES,
            draw("random", a=500, b=500),
            ["Each request is drawn by chance now, so that a user gets another variant each time."],
        ),
        (draw("random", a=500, b=500), draw("random", a=400, b=600), ["10 % of the requests change from a to b."]),
    ],
)
def test_words(before: Draw, after: Draw, words: list[str]) -> None:
    """The sentences have the exact percentage of users who get another variant."""
    assert variant_impact(before, after).words() == words


def test_ranges() -> None:
    """Each variant has its buckets; one without a weight has no user."""
    assert range_words(draw(a=400, b=0, c=600)) == [
        "a: 40 %, buckets 1 to 400 of 1000",
        "b: 0 %, no user",
        "c: 60 %, buckets 401 to 1000 of 1000",
    ]
