"""What a configuration reads from a context, feature by feature."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.engine.model import OverrideSpec, StrategySpec, VariantSpec
from flagsvc.engine.predicates import Always, DateComparison, InList, SegmentPredicate
from flagsvc.engine.reads import Reads
from flagsvc.engine.strategies import StrategyOptions, compile_rule
from flagsvc.engine.variants import compile_choice

SWITCHES = ("rollouts", "draws", "any_field", "custom", "random", "impure")
NOTHING: dict[str, object] = {"fields": set(), "needed": set(), "moments": set(), **dict.fromkeys(SWITCHES, False)}


def noted(reads: Reads) -> dict[str, object]:
    """Return the attributes that differ from their initial values."""
    return {name: getattr(reads, name) for name, value in NOTHING.items() if getattr(reads, name) != value}


def strategy(name: str, custom: Any = None, **parameters: str) -> dict[str, object]:
    """Return the reads of one strategy, which may be a custom one."""
    reads = Reads()
    options = StrategyOptions(False, "", {} if custom is None else {"mine": custom})
    reads.strategy(compile_rule(StrategySpec("", name, parameters, [], [], []), options))
    return noted(reads)


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("default", {}, {}),
        ("unheard of", {}, {}),
        ("gradualRolloutRandom", {"percentage": "50"}, {"random": True}),
        ("gradualRolloutRandom", {"percentage": "100"}, {}),
        ("flexibleRollout", {"rollout": "50", "stickiness": "random"}, {"random": True}),
        ("flexibleRollout", {"rollout": "50"}, {"rollouts": True}),
        ("flexibleRollout", {"rollout": "100"}, {}),
        ("flexibleRollout", {"rollout": "50", "stickiness": "region"}, {"fields": {"region"}}),
        ("gradualRolloutUserId", {"percentage": "50"}, {"fields": {"userId"}}),
        ("gradualRolloutSessionId", {"percentage": "50"}, {"fields": {"sessionId"}}),
        ("userWithId", {"userIds": "7"}, {"fields": {"userId"}}),
        ("remoteAddress", {"IPs": "::1"}, {"fields": {"remoteAddress"}}),
    ],
)
def test_what_a_strategy_reads(name: str, parameters: dict[str, str], expected: dict[str, Any]) -> None:
    """A strategy reads its field. Default stickiness and random draws are noted separately, because they depend on the context."""
    assert strategy(name, **parameters) == expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, {"custom": True, "any_field": True, "impure": True}),
        ({"pure": True}, {"custom": True, "any_field": True}),
        ({"reads": frozenset({"region"})}, {"custom": True, "fields": {"region"}, "impure": True}),
        ({"pure": True, "reads": frozenset({"region"})}, {"custom": True, "fields": {"region"}}),
        ({"pure": True, "reads": frozenset()}, {"custom": True}),
        ({"pure": True, "reads": frozenset({"properties"})}, {"custom": True, "any_field": True}),
        ({"pure": True, "reads": frozenset({"user_id"})}, {"custom": True, "fields": {"user_id", "userId"}}),
    ],
)
def test_what_a_custom_strategy_declares(declared: dict[str, object], expected: dict[str, Any]) -> None:
    """A strategy without declarations reads everything and is impure."""
    assert strategy("mine", SimpleNamespace(name="mine", **declared)) == expected


def test_what_a_predicate_reads() -> None:
    """A field, or a moment; of a segment what its constraints read."""
    reads = Reads()
    reads.predicate(InList(0, "region", False, {"eu"}))
    reads.predicate(DateComparison(False, 1, 5.0))
    reads.predicate(Always())
    reads.predicate(SegmentPredicate("1", "", [InList(0, "plan", False, set()), DateComparison(False, 1, 6.0)]))
    assert noted(reads) == {"fields": {"region", "plan"}, "moments": {5.0, 6.0}}


def variants(*weights: int, override: str | None = None) -> list[VariantSpec]:
    """Return variants with these weights; the first one with an override on a field."""
    first = [] if override is None else [OverrideSpec(override, ("7",))]
    return [VariantSpec(f"v{at}", weight, None, None, [] if at else first) for at, weight in enumerate(weights)]


@pytest.mark.parametrize(
    ("drawn", "stickiness", "expected"),
    [
        (variants(1, 1), None, {"draws": True}),
        (variants(1, 1), "default", {"draws": True}),
        (variants(1, 1), "region", {"fields": {"region"}, "needed": {"region"}}),
        (variants(1, 0), "region", {}),
        (variants(0, 1, override="plan"), None, {"fields": {"plan"}}),
        (variants(1, 1, override="plan"), "random", {"fields": {"plan", "random"}, "needed": {"random"}}),
    ],
)
def test_what_a_draw_reads(drawn: list[VariantSpec], stickiness: str | None, expected: dict[str, Any]) -> None:
    """A draw reads the fields of its overrides and its stickiness, if there is something to draw."""
    reads = Reads()
    choice = compile_choice(drawn, "g", stickiness, utf8=False)
    assert choice is not None
    reads.choice(choice)
    assert noted(reads) == expected


def test_merging() -> None:
    """Everything that either reads."""
    whole = Reads()
    whole.merge(Reads())
    assert noted(whole) == {}
    for name, value in NOTHING.items():
        one = Reads()
        if isinstance(value, set):
            getattr(one, name).add("a")
        else:
            setattr(one, name, True)
        whole.merge(one)
        whole.merge(Reads())
    assert noted(whole) == {name: {"a"} if isinstance(value, set) else True for name, value in NOTHING.items()}


def test_the_key_of_what_is_read() -> None:
    """The keys of two equal reads are equal. Every addition changes the key."""
    known = [Reads().key()]
    for name, value in NOTHING.items():
        one = Reads()
        setattr(one, name, {"a"} if isinstance(value, set) else True)
        same = Reads()
        same.merge(one)
        assert same.key() == one.key()
        known.append(one.key())
    assert len(set(known)) == len(known)
