"""The changes that turn an answer: one field, evaluated, and none by luck."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.context import Context
from flagsvc.engine.operators import OPERATORS
from flagsvc.reasons.steps import FieldChange, WholeExplanation
from flagsvc.reasons.turning import SAMPLES, with_field
from flagsvc.reasons.whole import explain_whole
from support.evaluating import constraint, feature, region, rollout, strategy
from support.whole import check_whole, unfolded, whole
from unit.engine.test_explain import OPERANDS


def told(explanation: WholeExplanation) -> list[str]:
    """Return the sentences of all changes."""
    return [change.words for change in explanation.changes]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("given", [None, "a", "1.2.3", "10.9.9.9", "5", "zzz"])
def test_every_operator_has_a_change_each_way(operator: str, inverted: bool, given: str | None) -> None:
    """For a plain constraint of any operator there is a value that turns the answer, on or off."""
    asked = constraint(operator, **OPERANDS[OPERATORS[operator].takes], inverted=inverted)
    found = whole(feature("f", strategy("default", asked)), region(given).replace(now=1.6e12))
    [change] = found.changes
    assert change.enabled is not found.enabled and change.strategy == 1
    assert change.field == ("currentTime" if operator.startswith("DATE") else "region")


def test_every_kind_of_values_has_samples() -> None:
    """A new kind needs a row."""
    assert SAMPLES.keys() == {operator.takes for operator in OPERATORS.values()}


IN_EU = constraint("IN", values=["eu"])
IDS = strategy("userWithId", parameters={"userIds": "7, 8"})
AGED = [constraint("NUM_GT", "age", value=17), constraint("NUM_LT", "age", value=19)]
ALONE: list[tuple[object, Context, str]] = [
    (IN_EU, region("us"), "with region eu it would be on"),
    (IN_EU, region("eu"), "without region it would be off"),
    (constraint("DATE_AFTER", value="2030-01-01"), Context(now=0), "with currentTime 2030-01-01T00:00:01Z it would be on"),
    (constraint("REGEX", value="^eu$"), Context(), "with region eu it would be on"),
    (constraint("REGEX", value="^(?:eu|us)$"), Context(), "with region eu it would be on"),
    (constraint("REGEX", value=r"@example\.com$"), Context(), "with region @example.com it would be on"),
    (constraint("REGEX", value=r"^v\d+"), Context(), "with region v1 it would be on"),
    (constraint("REGEX", value="(?i)x{40}y"), Context(), ""),
    *((constraint(name, value="x"), Context(), "") for name in ("DATE_AFTER", "NUM_GT", "SEMVER_GT", "WHAT")),
    (constraint("IN", "properties", values=["x"]), Context(), ""),
]
"""The only constraint, the context, and what is told. Of the properties as a whole, and of a wrong value, nothing is."""
TOLD: list[tuple[dict[str, Any], Context, str]] = [
    *((strategy("default", asked), context, words) for asked, context, words in ALONE),
    # two failing constraints on one field need one value that satisfies both; on two fields there is no single change
    (strategy("default", *AGED), Context(properties={"age": "30"}), "with age 18 it would be on"),
    (strategy("default", IN_EU, constraint("IN", "plan", values=["pro"])), Context(), ""),
    # a value that leaves one list may have to be in another list
    (
        strategy("default", constraint("NOT_IN", values=["eu"]), constraint("IN", values=["eu", "us"])),
        region("eu"),
        "with region us it would be on",
    ),
    # a user or an address of a list turns it; a host does not
    (IDS, Context(user_id="9"), "with userId 7 it would be on"),
    (IDS, Context(user_id="7"), "without userId it would be off"),
    (strategy("remoteAddress", parameters={"IPs": "10.0.0.0/8"}), Context(), "with remoteAddress 10.0.0.0 it would be on"),
    (strategy("applicationHostname", parameters={"hostNames": "a"}), Context(), ""),
    # who is admitted by a field is not without it; with default stickiness that would be chance
    (rollout("100", stickiness="region"), region("eu"), "without region it would be off"),
    (rollout("99", groupId="g"), Context(user_id="7"), ""),
]


@pytest.mark.parametrize(("asked", "context", "words"), TOLD)
def test_what_is_told(asked: dict[str, Any], context: Context, words: str) -> None:
    """A value is put in, or the field is left out. Nothing turns on a feature that is disabled."""
    assert told(whole(feature("f", asked), context)) == ([words] if words else [])
    assert told(whole({**feature("f", asked), "enabled": False}, context)) == []


def test_the_fields_of_a_change() -> None:
    """A change has its field and value, and the outcome."""
    [change] = whole(feature("f", strategy("default", IN_EU)), region("us")).changes
    words = "with region eu it would be on"
    assert change == FieldChange(words=words, field="region", value="eu", enabled=True, variant="disabled", strategy=1)
    assert told(whole(feature("f"), Context())) == []


def test_a_value_of_a_segment() -> None:
    """A constraint in a segment is turned like one of the strategy; a missing segment, or a null constraint, is not."""
    segments: list[object] = [{"id": 1, "constraints": [constraint("IN", values=["eu"])]}, {"id": 2, "constraints": [None]}]
    made = unfolded(
        feature("f", strategy(segments=[1])),
        feature("g", strategy(segments=[1, 3])),
        feature("h", strategy(segments=[2])),
        segments=segments,
    )
    check_whole(made, Context())
    assert [told(each) for each in explain_whole(made, Context())] == [["with region eu it would be on"], [], []]


def test_a_change_that_loses_the_rollout_is_not_told() -> None:
    """Another user is in another bucket: only those values are told for whom everything holds."""
    asked = rollout("80", groupId="g", stickiness="userId") | {"constraints": [constraint("IN", "userId", values=["7", "2"])]}
    assert whole(feature("f", asked), Context(user_id="9")).changes[0].value == "2"
    found = whole(feature("f", asked), Context(user_id="7"))
    assert found.strategies()[0].failing == ("rule",) and found.changes[0].value == "2"
    never = rollout("1", groupId="g", stickiness="userId") | {"constraints": [constraint("IN", "userId", values=["7"])]}
    assert told(whole(feature("f", never), Context(user_id="9"))) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_change_by_chance_is_not_told(seed: int) -> None:
    """What turns the answer for one draw only is no reason."""
    asked = rollout("50", stickiness="random") | {"constraints": [constraint("IN", values=["eu"])]}
    assert told(whole(feature("f", asked), Context(entropy=seed))) == []


def test_a_parent_is_turned() -> None:
    """A child whose parent alone is missing gets the parent's changes; one with two missing parents gets none."""
    made = unfolded(
        feature("p", strategy("default", constraint("IN", values=["eu"]))),
        feature("q", strategy("default", constraint("IN", "plan", values=["pro"]))),
        feature("child", dependencies=[{"feature": "p"}]),
        feature("both", dependencies=[{"feature": "p"}, {"feature": "q"}]),
        feature("lost", dependencies=[{"feature": "gone"}]),
    )
    for context, expected in (
        (region("us"), ["with region eu it would be on"]),
        (region("eu"), ["without region it would be off"]),
    ):
        check_whole(made, context)
        child, both, lost = explain_whole(made, context, ["child", "both", "lost"])
        assert told(child) == expected and child.changes[0].strategy is None
        assert told(both) == ([] if context.get("region") == "us" else ["with plan pro it would be on"])
        assert told(lost) == []


def test_rollouts_that_turn_it_on() -> None:
    """Only of a strategy that lacks nothing else, with an identifier, in a toggle that nothing else keeps off."""
    ten = rollout("10", groupId="g", stickiness="userId")
    limited = ten | {"constraints": [constraint("IN", values=["eu"])]}
    found = whole(feature("f", limited, ten), Context(user_id="7"))
    assert [(each.strategy, each.share) for each in found.rollouts] == [(2, 81)]
    assert whole(feature("f", rollout("81", groupId="g", stickiness="userId")), Context(user_id="7")).enabled
    assert not whole(feature("f", rollout("80", groupId="g", stickiness="userId")), Context(user_id="7")).enabled
    assert not whole(feature("f", ten), Context()).rollouts
    assert not whole(feature("f", ten, strategy()), Context(user_id="7")).rollouts
    assert not whole(feature("f", ten, dependencies=[{"feature": "gone"}]), Context(user_id="7")).rollouts
    assert not whole({**feature("f", ten), "enabled": False}, Context(user_id="7")).rollouts


@pytest.mark.parametrize(
    ("field", "value"),
    [("region", "eu"), ("region", None), ("region", ""), ("userId", "8"), ("userId", None), ("appName", "x"), ("environment", "x")],
)
def test_a_changed_field(field: str, value: str | None) -> None:
    """Field and property of its name are replaced, and nothing else."""
    given = Context(user_id="7", app_name="a", environment="e", properties={"region": "us", "userId": "9", "k": "v"})
    changed = with_field(given, field, value)
    assert changed is not None and changed.get(field) == value
    assert changed.get("k") == "v" and changed.get("sessionId") is None
    assert given.get("region") == "us"


@pytest.mark.parametrize(("field", "value"), [("userId", ""), ("currentTime", "soon"), ("currentTime", None), ("properties", "x")])
def test_what_a_field_cannot_be(field: str, value: str | None) -> None:
    """A standard field is never empty, the time is a date, and the properties are no text."""
    assert with_field(Context(), field, value) is None
