"""Sentences of constraints, segments, strategies and variants."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.model import SegmentSpec
from flagsvc.engine.operators import LISTS, OPERATORS
from flagsvc.engine.parse import parse_constraint, parse_segment, parse_strategy, parse_variants
from flagsvc.engine.strategies import BY_HOST, STRATEGIES
from flagsvc.reasons.words import (
    LONGEST,
    RULES,
    constraint_words,
    read_segments,
    segment_words,
    show,
    show_moment,
    strategy_words,
    variants_words,
    whole_words,
    words_of,
    words_of_variants,
)
from support.evaluating import constraint, rollout, strategy
from unit.engine.test_explain import OPERANDS

SENTENCES: dict[str, tuple[dict[str, Any], str, str]] = {
    "IN": ({"values": ["eu", "us", "uk", "au"]}, "region is one of eu, us, uk (+1)", "region is none of eu, us, uk (+1)"),
    "NOT_IN": ({"values": ["eu"]}, "region is not eu", "region is eu"),
    "STR_STARTS_WITH": ({"values": ["eu"]}, "region starts with eu", "region does not start with eu"),
    "STR_ENDS_WITH": ({"values": ["a", "b"]}, "region ends with one of a, b", "region ends with none of a, b"),
    "STR_CONTAINS": ({"values": ["a"]}, "region contains a", "region does not contain a"),
    "NUM_EQ": ({"value": "5.0"}, "region = 5", "region not = 5"),
    "NUM_GT": ({"value": "5"}, "region > 5", "region not > 5"),
    "NUM_GTE": ({"value": "1e1"}, "region ≥ 10", "region not ≥ 10"),
    "NUM_LT": ({"value": None}, "region < 0", "region not < 0"),
    "NUM_LTE": ({"value": 7}, "region ≤ 7", "region not ≤ 7"),
    "SEMVER_EQ": ({"value": "v1.2.3"}, "region = version v1.2.3", "region not = version v1.2.3"),
    "SEMVER_GT": ({"value": "1.2.3"}, "region > version 1.2.3", "region not > version 1.2.3"),
    "SEMVER_GTE": ({"value": "1.2.3"}, "region ≥ version 1.2.3", "region not ≥ version 1.2.3"),
    "SEMVER_LT": ({"value": "1.2.3"}, "region < version 1.2.3", "region not < version 1.2.3"),
    "SEMVER_LTE": ({"value": "1.2.3"}, "region ≤ version 1.2.3", "region not ≤ version 1.2.3"),
    "DATE_AFTER": ({"value": "2026-12-24T18:00Z"}, "time is after 2026-12-24T18:00:00Z", "time is not after 2026-12-24T18:00:00Z"),
    "DATE_BEFORE": ({"value": 1.5}, "time is before 1970-01-01T00:00:00.001Z", "time is not before 1970-01-01T00:00:00.001Z"),
    "REGEX": ({"value": "^a"}, "region matches ^a", "region does not match ^a"),
    "IN_CIDR": (
        {"values": ["10.0.0.0/8", "::/0"]},
        "region is in one of the networks 10.0.0.0/8, ::/0",
        "region is in none of the networks 10.0.0.0/8, ::/0",
    ),
}  # fmt: skip
"""Operator → the rest of a constraint, its sentence, and the inverted one."""


def sentence(raw: dict[str, Any]) -> str:
    """Return the sentence of a constraint."""
    return constraint_words(parse_constraint(raw, ""))


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_constraint_as_a_sentence(operator: str) -> None:
    """Every operator has its words, also inverted."""
    rest, plain, inverted = SENTENCES[operator]
    assert sentence(constraint(operator, **rest)) == plain
    assert sentence(constraint(operator, **rest, inverted=True)) == inverted


@pytest.mark.parametrize("operator", OPERATORS)
def test_case_is_told_where_it_can_be_ignored(operator: str) -> None:
    """Only the operators that read `caseInsensitive` say so, and they read it."""
    operand = OPERANDS[OPERATORS[operator].takes]
    told = sentence(constraint(operator, **operand, caseInsensitive=True))
    assert told.endswith(", in any case") is OPERATORS[operator].any_case
    assert OPERATORS[operator].any_case is (operator.startswith("STR_") or operator == "REGEX")


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (constraint("WHAT"), "never: unknown operator `WHAT`"),
        (constraint("NUM_EQ", value="x"), "never: `x` is not a number"),
        (constraint("NUM_EQ", value="x", inverted=True), "always, because it is inverted: `x` is not a number"),
        (constraint("REGEX"), "never: no regular expression is given"),
        (constraint("IN"), "region is one of no values"),
        (constraint("IN", "", values=["a,b", " ", "c"]), '"" is one of "a,b", "", c'),
    ],
)
def test_odd_constraints(raw: dict[str, Any], told: str) -> None:
    """A constraint that every context gets the same answer from says why; odd texts are in quotes."""
    assert sentence(raw) == told


def test_values() -> None:
    """A long value is cut, control characters are escaped, blanks at the ends are seen; a date beyond Python's is JavaScript's."""
    assert show("x" * 500) == "x" * (LONGEST - 1) + "…"
    assert show("a\x1b[2J\n\ud800") == "a\\x1b[2J\\n\\ud800"
    assert show(" a") == '" a"'
    assert show_moment(8.64e15) == "Sat Sep 13 275760 00:00:00 GMT+0000 (Coordinated Universal Time)"
    assert show_moment(float("nan")) == "Invalid Date"


RULE_SENTENCES: list[tuple[dict[str, Any], str]] = [
    (strategy(), "everyone"),
    (rollout("25", groupId="new-checkout", stickiness="userId"), "25 % by userId, group new-checkout"),
    (rollout("25.9", stickiness="region"), "25 % by region"),
    (rollout("25", groupId="g"), "25 %, group g"),
    (rollout("100"), "everyone"),
    (rollout("100", stickiness="region"), "everyone with region"),
    (rollout("10", stickiness="random"), "10 % of all requests, by chance"),
    (rollout("x", stickiness="userId"), "nobody (0 %)"),
    (strategy("gradualRolloutUserId", parameters={"percentage": "5", "groupId": "g"}), "5 % by userId, group g"),
    (strategy("gradualRolloutSessionId", parameters={"percentage": "5"}), "5 % by sessionId"),
    (strategy("gradualRolloutRandom", parameters={"percentage": 5}), "5 % of all requests, by chance"),
    (strategy("userWithId", parameters={"userIds": "1, 2, 3, 4"}), "userId is one of 1, 2, 3 (+1)"),
    (strategy("userWithId", parameters={"userIds": "1"}), "userId is 1"),
    (strategy("userWithId"), "nobody (no userIds)"),
    (strategy("remoteAddress", parameters={"IPs": "10.0.0.0/8,::1"}), "remoteAddress is in 10.0.0.0/8, ::1"),
    (strategy(BY_HOST, parameters={"hostNames": "a,b"}), "the proxy's host is one of a, b"),
    (strategy("opening-hours", parameters={"start": 9}), "custom strategy opening-hours (start: 9)"),
    (strategy("mine", parameters=dict.fromkeys("abcde", 1)), "custom strategy mine (a: 1, b: 1, c: 1 (+2))"),
    (strategy("mine"), "custom strategy mine"),
]


@pytest.mark.parametrize(("raw", "told"), RULE_SENTENCES)
def test_a_strategy_as_a_sentence(raw: dict[str, Any], told: str) -> None:
    """The sentence has the rule, and nothing else if there are no conditions."""
    assert strategy_words(parse_strategy(raw, ""), {}) == told


def test_the_own_group_is_not_told() -> None:
    """The group of a rollout is told, but for the default: the name of the flag."""
    asked = rollout("25", groupId="new")
    assert words_of(asked, {}, "new") == whole_words(asked, {}, "new") == "25 %"
    assert words_of(asked, {}, "old") == words_of(asked, {}) == "25 %, group new"


def test_every_built_in_strategy_has_a_sentence() -> None:
    """A strategy without words would be called a custom one."""
    assert RULES.keys() == STRATEGIES.keys()
    assert STRATEGIES.keys() <= {raw["name"] for raw, _ in RULE_SENTENCES}


def test_custom_strategies_that_are_known() -> None:
    """A custom strategy may have the name of a built-in strategy. An unknown custom strategy admits no user."""
    asked = parse_strategy(rollout("5"), "")
    assert strategy_words(asked, {}, custom={"flexibleRollout"}) == "custom strategy flexibleRollout (rollout: 5)"
    assert strategy_words(parse_strategy(strategy("mine"), ""), {}, custom={"x"}) == "nobody: unknown strategy mine"


def beta(*constraints: object) -> SegmentSpec:
    """Return a segment."""
    return parse_segment({"id": 1, "name": "beta", "constraints": list(constraints)}, "")


def test_a_segment_as_a_sentence() -> None:
    """The sentence has its constraints; a segment without a name has its id, and a missing one says so."""
    assert segment_words(beta(constraint("STR_STARTS_WITH", values=["eu"])), "1") == "in segment beta: region starts with eu"
    assert segment_words(beta(None, constraint("NUM_EQ", value=1)), "1") == (
        "in segment beta: never: a constraint that is no object and region = 1"
    )
    assert segment_words(parse_segment({"id": 7}, ""), "7") == "in segment 7: everyone"
    assert segment_words(None, "9") == "in segment 9, which is missing"


def test_a_whole_strategy_as_a_sentence() -> None:
    """Rule, constraints and segments are joined; `everyone` is left out if there are conditions; a disabled one says so."""
    plan = constraint("IN", "plan", values=["team", "business", "a", "b", "c"])
    segments = {"1": beta(constraint("STR_STARTS_WITH", values=["eu"]))}
    asked = parse_strategy(rollout("25", stickiness="userId") | {"constraints": [plan], "segments": [1]}, "")
    conditions = "plan is one of team, business, a (+2) and in segment beta: region starts with eu"
    assert strategy_words(asked, segments) == f"25 % by userId and {conditions}"
    assert strategy_words(asked, segments, disabled=True) == f"25 % by userId and {conditions} (disabled)"
    everyone = parse_strategy(strategy("default", plan, segments=[1]), "")
    assert strategy_words(everyone, segments) == conditions


def test_variants_as_a_sentence() -> None:
    """Each variant has its share; nothing is said if no variant has a weight."""
    raw = [{"name": name, "weight": weight} for name, weight in (("blue", 1), ("green", 2), ("x", 0), ("y", 0))]
    variants = parse_variants({"variants": raw}, "")
    assert variants_words(variants, "userId") == "blue 33.3 %, green 66.7 %, x 0 % (+1), by userId"
    assert variants_words(variants[:1], "default") == "blue 100 %, by userId, sessionId or remoteAddress"
    assert variants_words(variants[:1], "random") == "blue 100 %, by chance"
    assert variants_words(variants[2:], "default") == words_of_variants([]) == ""


def test_lists_are_the_operators_with_several_values() -> None:
    """Only they are shortened with the number of the rest."""
    for name, operator in OPERATORS.items():
        told = sentence(constraint(name, values=list("abcdef"), value="1.2.3"))
        assert ("(+3)" in told) is (operator.takes in LISTS)


SEGMENTS = read_segments(
    [
        {"id": 1, "name": "eu", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]},
        {"id": None, "name": "bad", "constraints": []},
    ]
)
VARIANTS = [{"name": "blue", "weight": 500}, {"name": "green", "weight": 500}]


def test_a_strategy_with_title_segment_and_variants() -> None:
    """The sentence has all of them. A segment that the engine cannot read is left out, the others are known by identity."""
    assert list(SEGMENTS) == ["1"]
    strategy = {"name": "default", "title": "Europe", "segments": [1], "variants": VARIANTS, "disabled": True}
    expected = "Europe: in segment eu: region is eu (disabled); variants: blue 50 %, green 50 %, by userId, sessionId or"
    assert whole_words(strategy, SEGMENTS) == f"{expected} remoteAddress"


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ({"name": "default", "constraints": 7}, "never: a constraint that is no object"),
        ({"name": ["default"]}, 'custom strategy ""'),
        ({"name": "userWithId", "parameters": "odd"}, "nobody (no userIds)"),
        (strategy("userWithId", parameters={"userIds": "7"}, disabled=True), "userId is 7 (disabled)"),
    ],
)
def test_an_odd_strategy(strategy: dict[str, object], words: str) -> None:
    """The sentence says what the engine makes of it."""
    assert words_of(strategy, SEGMENTS) == words
