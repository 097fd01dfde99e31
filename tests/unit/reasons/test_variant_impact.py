"""What a change of variants does to users: by arithmetic, and as the engine draws."""

from __future__ import annotations

import time

import pytest

from flagsvc.engine.model import OverrideSpec, VariantSpec
from flagsvc.reasons.impact import BY_CHANCE, NOT_COUNTED, OVERRIDES, WITHOUT_USER, Draw, range_words, variant_impact


def draw(sticks_to: str = "userId", group: str = "g", **weights: int) -> Draw:
    """Return the draw of variants with these weights."""
    return Draw([VariantSpec(name, weight, sticks_to, None, []) for name, weight in weights.items()], group, sticks_to)


def special(payload: str = "", user: str = "") -> Draw:
    """Return the halves, of which the first has a payload, and an override for a user."""
    overrides = [OverrideSpec("userId", (user,))] if user else []
    first = VariantSpec("a", 500, "userId", {"type": "string", "value": payload}, overrides)
    return Draw([first, VariantSpec("b", 500, "userId", None, [])], "g", "userId")


HALVES = draw(a=500, b=500)
CHANCES = draw("random", a=500, b=500)
MOVED = "10 % of the users with a variant change from a to b."
AGAIN = "All users are drawn again: 50 % of them get another variant."
OTHER_PAYLOAD = "The users of a get another payload."


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (HALVES, HALVES, []),
        (HALVES, draw(a=400, b=600), [MOVED]),
        (
            HALVES,
            draw(b=500, c=500),
            ["50 % of the users with a variant change from a to b.", "50 % of the users with a variant change from b to c."],
        ),
        (HALVES, draw(group="h", a=500, b=500), [AGAIN]),
        (HALVES, draw("company", a=900, b=100), [AGAIN]),
        (draw(a=1000), draw("company", "h", a=1000, b=0), []),
        (draw(a=1000), draw("company", "h", a=900, b=100), [MOVED]),
        (HALVES, draw("default", a=500, b=500), [WITHOUT_USER["userId", "default"]]),
        (draw("default", a=500, b=500), draw(a=400, b=600), [MOVED, WITHOUT_USER["default", "userId"]]),
        (HALVES, CHANCES, ["Each request is drawn by chance now, so that a user gets another variant each time."]),
        (CHANCES, HALVES, ["Each user keeps one variant now. Before, each request was drawn by chance."]),
        (CHANCES, draw("random", "h", a=400, b=600), [BY_CHANCE]),
        (CHANCES, draw("random", "h", b=500, a=500), []),
        (special("x"), special("y"), [OTHER_PAYLOAD]),
        (special("x"), special("x", "7"), [OVERRIDES]),
        (special("x", "7"), draw(a=400, b=600), [MOVED, OTHER_PAYLOAD, OVERRIDES, NOT_COUNTED]),
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


def test_very_many_variants_take_linear_time() -> None:
    """The sum of the weights is made once, and variants without a weight take no part: a form can have thousands of both."""
    weights = {f"v{number}": 1 for number in range(100_000)} | {f"w{number}": 0 for number in range(100_000)}
    many = draw("userId", "g", **weights)
    started = time.monotonic()
    assert len(variant_impact(draw("userId", "h", a=1), many).moves) == 100_000
    assert len(variant_impact(draw(v0=99_999, a=1), many).moves) == 99_999
    assert len(range_words(many)) == 200_000
    assert time.monotonic() - started < 20
