"""What a strategy says in a few words each."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.operators import OPERATORS
from flagsvc.engine.parse import parse_constraint
from flagsvc.engine.strategies import BY_HOST, STRATEGIES
from flagsvc.reasons.chips import ALL, Chip, constraint_chip, describe_strategy, join_chips
from flagsvc.reasons.words import read_segments
from support.evaluating import constraint, rollout, strategy

SEGMENTS = read_segments([{"id": 1, "name": "beta", "constraints": []}])
VARIANTS = {"variants": [{"name": name, "weight": 1} for name in "abc"]}
COUNTRY = constraint("IN", "country", values=["NL", "BE", "FR"])

SAID: list[tuple[dict[str, Any], list[str]]] = [
    (strategy(), ["*everyone"]),
    (rollout("25", groupId="flag", stickiness="userId"), ["*25 %"]),
    (rollout("25", stickiness="userId") | {"constraints": [COUNTRY]}, ["*25 %", "country: NL, BE +1"]),
    (rollout("100"), ["*everyone"]),
    (rollout("100", stickiness="region"), ["has region"]),
    (rollout("0"), ["*nobody"]),
    (rollout("100") | {"constraints": [COUNTRY]}, ["country: NL, BE +1"]),
    (rollout("100") | {"segments": [1, 7]}, ["segment: beta", "segment: 7"]),
    (rollout("100") | VARIANTS, ["*3 variants"]),
    (rollout("10") | VARIANTS | {"segments": [1]}, ["*10 %", "*3 variants", "segment: beta"]),
    (strategy("gradualRolloutUserId", parameters={"percentage": "5"}), ["*5 %"]),
    (strategy("gradualRolloutSessionId", parameters={"percentage": "5"}), ["*5 %"]),
    (strategy("gradualRolloutRandom", parameters={"percentage": "5"}), ["*5 %"]),
    (strategy("userWithId", parameters={"userIds": "1, 2, 3, 4"}), ["userId: 1, 2 +2"]),
    (strategy("userWithId"), ["*nobody"]),
    (strategy("remoteAddress", parameters={"IPs": "10.0.0.0/8"}), ["remoteAddress: 10.0.0.0/8"]),
    (strategy(BY_HOST, parameters={"hostNames": "a"}), ["the proxy's host: a"]),
    (strategy("opening-hours-of-all-our-shops"), ["*custom: opening-hours-of-all-ou…"]),
]
"""Strategy of the flag `flag` → its chips; a star is before a strong one."""


def marked(chips: list[Chip]) -> list[str]:
    """Return chips as texts, strong ones with a star."""
    return [f"{'*' if each['look'] else ''}{each['text']}" for each in chips]


@pytest.mark.parametrize(("raw", "said"), SAID)
def test_a_strategy_in_chips(raw: dict[str, Any], said: list[str]) -> None:
    """The rule comes first, then variants and conditions. Group and stickiness have no chip."""
    assert marked(describe_strategy(raw, SEGMENTS, "flag").chips) == said


def test_every_built_in_strategy_has_chips() -> None:
    """A strategy without its own chips would be called a custom one."""
    assert STRATEGIES.keys() <= {raw["name"] for raw, _ in SAID}


CONSTRAINTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "IN": ({"values": ["eu", "us"]}, "region: eu, us", "region: not eu, us"),
    "NOT_IN": ({"values": ["x" * 30]}, f"region: not {'x' * 23}…", f"region: {'x' * 23}…"),
    "STR_STARTS_WITH": ({"values": ["a", "b", "c"]}, "region starts with a, b +1", "region does not start with a, b +1"),
    "STR_ENDS_WITH": ({"values": ["a"]}, "region ends with a", "region does not end with a"),
    "STR_CONTAINS": ({"values": []}, "region contains no value", "region does not contain no value"),
    "NUM_EQ": ({"value": "5.0"}, "region = 5", "region not = 5"),
    "NUM_GT": ({"value": "5"}, "region > 5", "region not > 5"),
    "NUM_GTE": ({"value": "5"}, "region ≥ 5", "region not ≥ 5"),
    "NUM_LT": ({"value": "5"}, "region < 5", "region not < 5"),
    "NUM_LTE": ({"value": "x"}, "never", "always"),
    "SEMVER_EQ": ({"value": "1.2.3"}, "region = 1.2.3", "region not = 1.2.3"),
    "SEMVER_GT": ({"value": "1.2.3"}, "region > 1.2.3", "region not > 1.2.3"),
    "SEMVER_GTE": ({"value": "4.2.0"}, "region ≥ 4.2.0", "region not ≥ 4.2.0"),
    "SEMVER_LT": ({"value": "1.2.3"}, "region < 1.2.3", "region not < 1.2.3"),
    "SEMVER_LTE": ({"value": "1.2.3"}, "region ≤ 1.2.3", "region not ≤ 1.2.3"),
    "DATE_AFTER": ({"value": "2026-12-24T18:00Z"}, "after 2026-12-24 18:00", "not after 2026-12-24 18:00"),
    "DATE_BEFORE": ({"value": "2026-12-24"}, "before 2026-12-24", "not before 2026-12-24"),
    "REGEX": ({"value": "^a"}, "region matches ^a", "region does not match ^a"),
    "IN_CIDR": ({"values": ["10.0.0.0/8"]}, "region: 10.0.0.0/8", "region: not 10.0.0.0/8"),
}
"""Operator → the rest of a constraint, its chip, and that of the inverted one."""


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_constraint_as_a_chip(operator: str) -> None:
    """Every operator is short, also inverted, and a constraint with one answer for all says which."""
    rest, *said = CONSTRAINTS[operator]
    for inverted, text in zip((False, True), said, strict=True):
        found = constraint_chip(parse_constraint(constraint(operator, **rest, inverted=inverted), ""))
        assert found == {"text": text, "look": ""}


@pytest.mark.parametrize(
    ("strategies", "variants", "said"),
    [
        ([], 0, ["*everyone"]),
        ([], 2, ["*2 variants"]),
        ([], 1, ["*1 variant"]),
        ([rollout("5")], 0, ["*5 %"]),
        ([rollout("5")], 2, ["*2 variants", "*5 %"]),
        ([rollout("5"), rollout("6"), rollout("7")], 0, ["*5 %", "+2"]),
        ([rollout("5"), strategy()], 0, ["*everyone", "+1"]),
        ([rollout("100") | VARIANTS], 2, ["*3 variants"]),
    ],
)
def test_all_strategies_together(strategies: list[dict[str, Any]], variants: int, said: list[str]) -> None:
    """The first strategy is shown, or the strategy for everyone, and how many more there are; without any it is on for everyone."""
    found = [describe_strategy(each, SEGMENTS, "flag").chips for each in strategies]
    assert marked(join_chips(found, variants)) == said
    assert ALL == {"text": "everyone", "look": "strong"}
