"""Random draws, percentages and custom strategies. The corpus has every built-in strategy and its stickiness."""

from __future__ import annotations

from collections.abc import Mapping
from operator import setitem
from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.engine.canonical import NAMED
from flagsvc.engine.context import Context
from flagsvc.engine.strategies import percentage
from support.evaluating import constraint, feature, is_on, rollout, snapshot, strategy


@pytest.mark.parametrize(
    "flag",
    [
        feature("f", rollout("30", stickiness="random")),
        feature("f", rollout("30")),
        feature("f", strategy("gradualRolloutRandom", parameters={"percentage": "30"})),
    ],
)
def test_random_draws_depend_on_the_entropy_alone_and_follow_the_share(flag: dict[str, Any]) -> None:
    """The same entropy gives the same draw; over many, the share comes out."""
    made = snapshot(flag)
    drawn = [made.decide(Context(entropy=seed * 2**31 + seed), "f")[0] for seed in range(4000)]
    assert drawn == [made.decide(Context(entropy=seed * 2**31 + seed), "f")[0] for seed in range(4000)]
    assert 0.26 < sum(drawn) / len(drawn) < 0.34
    assert made.cache_keys.key(Context(), NAMED, ["f"]) is None


def test_draws_of_two_toggles_are_independent() -> None:
    """Two random toggles of one request do not move together."""
    made = snapshot(feature("a", rollout("50", stickiness="random")), feature("b", rollout("50", stickiness="random")))
    pairs = {tuple(made.named(Context(entropy=seed), ["a", "b"])[1]) for seed in range(200)}
    assert len(pairs) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, 0), ("", 0), ("-1", 0), ("0", 0), ("0.5", 0), ("1", 1), ("33.9", 33), ("1e2", 100), ("Infinity", 100), ("x", 0)],
)
def test_percentages(text: str | None, expected: int) -> None:
    """A percentage is a JavaScript number; only whole buckets count."""
    assert percentage(text) == expected


def test_custom_code_cannot_change_the_configuration() -> None:
    """Parameters are read-only; an attempt is a fault like any other."""
    meddling = SimpleNamespace(name="meddling", is_enabled=lambda parameters, context: setitem(parameters, "is", "changed"))
    made = snapshot(feature("f", strategy("meddling")), custom_strategies={"meddling": meddling})
    assert not made.decide(Context(), "f")[0]
    assert [type(each.error).__name__ for each in made.take_faults()] == ["TypeError"]


class Broken:
    """A custom strategy that always raises."""

    name = "broken"

    def is_enabled(self, parameters: Mapping[str, str], context: Context) -> bool:
        raise ValueError("no")


def test_a_custom_strategy_decides() -> None:
    """Custom code sees parameters and context; constraints still come first."""
    in_region = SimpleNamespace(is_enabled=lambda parameters, context: context.get("region") == parameters["is"])
    custom = {"region": in_region}
    flag = feature("f", strategy("region", constraint("IN", "plan", values=["pro"]), parameters={"is": "eu"}))
    assert is_on(flag, Context(properties={"region": "eu", "plan": "pro"}), custom_strategies=custom)
    assert not is_on(flag, Context(properties={"region": "eu", "plan": "free"}), custom_strategies=custom)
    assert not is_on(flag, Context(properties={"region": "us", "plan": "pro"}), custom_strategies=custom)


def test_a_custom_strategy_that_raises_is_false_and_noted() -> None:
    """An exception harms only that strategy; it can be asked for once."""
    made = snapshot(feature("f", strategy("broken"), strategy("default")), custom_strategies={"broken": Broken()})
    assert made.decide(Context(), "f") == (True, "disabled")
    assert [(each.kind, each.name, str(each.error)) for each in made.take_faults()] == [("strategy", "broken", "no")]
    assert made.take_faults() == []


def test_a_fault_keeps_no_context() -> None:
    """The recorded exception has its place, but no local variables."""
    made = snapshot(feature("f", strategy("broken")), custom_strategies={"broken": Broken()})
    made.enabled(Context(user_id="7"))
    step = made.take_faults()[0].error.__traceback__
    assert step is not None
    while step.tb_next is not None:
        step = step.tb_next
    assert step.tb_frame.f_code.co_name == "is_enabled"
    assert step.tb_frame.f_locals == {}


def test_faults_are_bounded() -> None:
    """A strategy that always raises does not fill the memory."""
    made = snapshot(feature("f", strategy("broken")), custom_strategies={"broken": Broken()})
    for _ in range(300):
        made.enabled(Context())
    assert len(made.take_faults()) == 100
