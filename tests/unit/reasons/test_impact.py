"""What a change of a strategy, or of variants, does to users: in words and in percent, and as the engine draws."""

from __future__ import annotations

import time
from typing import Any

import pytest

from flagsvc.engine.model import OverrideSpec, StrategySpec, VariantSpec
from flagsvc.engine.parse import parse_segment, parse_strategy
from flagsvc.reasons.impact import (
    AGAIN,
    BY_CHANCE,
    CHANCE,
    NOT_COUNTED,
    OVERRIDES,
    SAME,
    UNKNOWN,
    WITHOUT_USER,
    Draw,
    impact_of,
    range_words,
    variant_impact,
)

SEGMENTS = {"1": parse_segment({"id": 1, "name": "beta", "constraints": []}, "segment")}


def rollout(share: int, sticks_to: str = "userId", group: str = "g", **more: Any) -> StrategySpec:
    """Return a rollout."""
    parameters = {"rollout": str(share), "stickiness": sticks_to, "groupId": group}
    return spec({"name": "flexibleRollout", "parameters": parameters, **more})


def spec(strategy: dict[str, Any]) -> StrategySpec:
    """Return a strategy of the admin API as a model."""
    return parse_strategy(strategy, "strategy")


def users(*values: str, operator: str = "IN", inverted: bool = False) -> list[dict[str, Any]]:
    """Return a list of one constraint on users."""
    return [{"contextName": "userId", "operator": operator, "values": list(values), "inverted": inverted}]


@pytest.mark.parametrize(
    ("before", "after", "gained", "lost", "drawn", "may_gain", "may_lose"),
    [
        (rollout(10), rollout(25), 15, 0, SAME, True, False),
        (rollout(25), rollout(10), 0, 15, SAME, False, True),
        (rollout(25), rollout(25), 0, 0, SAME, False, False),
        (rollout(10), rollout(25, group="h"), 22.5, 7.5, AGAIN, True, True),
        (rollout(10), rollout(25, "company"), 22.5, 7.5, AGAIN, True, True),
        (rollout(10), rollout(100, group="h"), 90, 0, AGAIN, True, False),
        (rollout(100), rollout(25, group="h"), 0, 75, AGAIN, False, True),
        (rollout(10), rollout(100, "company"), 90, 0, AGAIN, True, True),
        (rollout(10, "default"), rollout(25, "userId"), 15, 0, SAME, True, True),
        (rollout(10, "userId"), rollout(25, "default"), 15, 0, SAME, True, False),
        (rollout(100, "default"), rollout(25, "company", "h"), 0, 75, SAME, False, True),
        (rollout(0), rollout(25, "company", "h"), 25, 0, SAME, True, False),
        (rollout(10, "random"), rollout(25, "random"), 15, 0, CHANCE, True, True),
        (rollout(10, "random"), rollout(100, "random"), 90, 0, CHANCE, True, False),
        (None, rollout(25), 25, 0, SAME, True, False),
        (rollout(25), None, 0, 25, SAME, False, True),
        (spec({"name": "default"}), rollout(25), 0, 75, SAME, False, True),
        (spec({"name": "userWithId", "parameters": {"userIds": "1"}}), rollout(25), None, None, UNKNOWN, True, True),
        (spec({"name": "mine", "parameters": {}}), spec({"name": "mine"}), None, None, SAME, False, False),
    ],
)
def test_shares(
    before: StrategySpec | None,
    after: StrategySpec | None,
    gained: float | None,
    lost: float | None,
    drawn: str,
    may_gain: bool,
    may_lose: bool,
) -> None:
    """Percentages are exact where buckets stay; two groups overlap by the product of their shares."""
    found = impact_of(before, after)
    assert (found.share.gained, found.share.lost, found.share.drawn) == (gained, lost, drawn)
    assert (found.may_gain, found.may_lose) == (may_gain, may_lose)


NO_GAIN, NO_LOSS = "No user gets it who does not have it now.", "No user loses it."
AGAIN_WORDS = "All users are drawn again, because the group or what it sticks to changes."
NEVER = "Removed: never: a constraint that is no object."


def ten(*values: str, operator: str = "IN", inverted: bool = False) -> StrategySpec:
    """Return a rollout to 10 % of some users."""
    return rollout(10, constraints=users(*values, operator=operator, inverted=inverted))


CHANGES: list[tuple[StrategySpec, StrategySpec, *tuple[str, ...]]] = [
    (rollout(10), rollout(25), "15 % of the users by userId get it.", NO_LOSS),
    (rollout(10), rollout(25, group="h"), AGAIN_WORDS, "22.5 % of the users by userId get it.",
     "7.5 % of the users by userId lose it."),
    (rollout(10, "default"), rollout(10, "userId"), "Those without userId lose it.", NO_GAIN),
    (rollout(10, "userId"), rollout(10, "default"), "Of those without userId, 10 % get it.", NO_LOSS),
    (rollout(100, "default"), rollout(25, "company"), "75 % of the users by company lose it.", "Those without company lose it.",
     NO_GAIN),
    (rollout(25, "company"), rollout(100, "default", "other"), "75 % of the users by company get it.",
     "Of those without company, 100 % get it.", NO_LOSS),
    (ten("1"), ten("1", "2", "3"), "userId is one of 1, 2, 3: 2 added (2, 3).", NO_LOSS),
    (ten("1", operator="NOT_IN"), ten("1", "2", operator="NOT_IN"), "userId is none of 1, 2: 1 added (2).", NO_GAIN),
    (ten("1", inverted=True), ten("2", inverted=True), "userId is not 2: 1 added (2), 1 removed (1)."),
    (rollout(10, segments=[1]), ten("1"), "Added: userId is 1.", "Removed: in segment beta: everyone."),
    (ten("1", "2"), ten("2", "1"), "No user gets it or loses it by this."),
    (rollout(10, constraints=[None]), rollout(10), NEVER, NO_LOSS),
    (rollout(10, constraints=[None]), ten("1"), NEVER, "Added: userId is 1."),
    (rollout(100, "random"), rollout(25, "default"), "75 % of the requests lose it.", NO_GAIN),
    (spec({"name": "mine"}), rollout(10), "The rule changes. Who gets it and who loses it depends on what contexts have."),
]  # fmt: skip
"""A strategy before and after, and what is said of the change."""


@pytest.mark.parametrize("row", CHANGES)
def test_words(row: tuple[StrategySpec, StrategySpec, *tuple[str, ...]]) -> None:
    """The sentences say who gets it, who loses it, and which conditions changed."""
    before, after, *words = row
    assert impact_of(before, after, SEGMENTS).words() == words


def test_exactness() -> None:
    """The percentages are all that changes only where no condition does, and only for rollouts."""
    assert impact_of(rollout(10), rollout(25)).is_exact
    assert not impact_of(rollout(10), rollout(25, constraints=users("1"))).is_exact
    assert not impact_of(spec({"name": "mine"}), rollout(25)).is_exact


def test_long_lists_are_compared_in_linear_time() -> None:
    """Lists of hundreds of thousands of values would take half an hour if each was looked for in the other."""
    before, after = (
        spec({"name": "default", "constraints": users(*[f"{name}{number}" for number in range(300_000)])}) for name in ("a", "b")
    )
    [told] = impact_of(before, after).conditions
    assert "300000 added" in told
    assert "300000 removed" in told


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
DRAWN_AGAIN = "All users are drawn again: 50 % of them get another variant."
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
        (HALVES, draw(group="h", a=500, b=500), [DRAWN_AGAIN]),
        (HALVES, draw("company", a=900, b=100), [DRAWN_AGAIN]),
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
def test_words_of_variants(before: Draw, after: Draw, words: list[str]) -> None:
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
