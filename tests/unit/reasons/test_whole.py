"""The whole explanation: each kind of step with its fields, and every step answered."""

from __future__ import annotations

from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.engine.context import Context
from flagsvc.engine.explain import explain
from flagsvc.reasons.steps import (
    ConstraintStep,
    CustomStep,
    DependencyStep,
    RolloutStep,
    RuleStep,
    SegmentStep,
    Step,
    ToggleStep,
    VariantRange,
    VariantStep,
    WholeExplanation,
    tell_variant,
)
from flagsvc.reasons.whole import explain_whole
from support.evaluating import constraint, feature, region, rollout, strategy
from support.whole import check_whole, unfolded, whole
from unit.engine.test_strategies import Broken

MOMENT = 1642860000000.0
SEEDS = range(12)


def only(explanation: WholeExplanation) -> Any:
    """Return the only condition of the only strategy, or its rule if there is no other."""
    [step] = explanation.strategies()
    return step.steps[0]


def constrained(asked: object, context: Context) -> ConstraintStep:
    """Return the step of a constraint."""
    step = only(whole(feature("f", strategy("default", asked)), context))
    assert isinstance(step, ConstraintStep)
    return step


def test_a_constraint_with_a_list() -> None:
    """The step has the first values, their number, what was found, and whether the list has it."""
    step = constrained(constraint("IN", values=list("abcdefg")), region("g"))
    assert (step.field, step.operator, step.place) == ("region", "IN", "constraints[0]")
    assert (step.values, step.count, step.among, step.found) == (tuple("abcde"), 7, True, "g")
    assert (step.answer, step.inverted, step.any_case, step.by_time) == (True, False, False, False)
    absent = constrained(constraint("IN", values=["a"]), region(None))
    assert (absent.found, absent.among, absent.answer) == (None, False, False)


@pytest.mark.parametrize(
    ("operator", "value", "among"),
    [("IN", "eu", True), ("NOT_IN", "eu", True), ("NOT_IN", "us", False), ("STR_STARTS_WITH", "EU-west", True),
     ("STR_CONTAINS", "us", False), ("IN_CIDR", "eu", False)],
)  # fmt: skip
@pytest.mark.parametrize("inverted", [False, True])
def test_among_means_the_list(operator: str, value: str, among: bool, inverted: bool) -> None:
    """`among` says whether the list has or matches the value. What the constraint makes of it does not matter."""
    step = constrained(constraint(operator, values=["eu"], inverted=inverted, caseInsensitive=True), region(value))
    assert step.among is among
    assert step.inverted is inverted
    assert step.answer is (among is (inverted is (operator == "NOT_IN")))
    assert step.any_case is operator.startswith("STR_")


def test_a_constraint_with_one_value() -> None:
    """It has no list. A wrong value is not told as a value."""
    step = constrained(constraint("NUM_GT", value="5.0"), region("6"))
    assert (step.values, step.count, step.among, step.found) == (("5",), 1, None, "6")
    odd = constrained(constraint("NUM_GT", value="five"), region("6"))
    assert (odd.values, odd.count, odd.answer) == ((), 0, False)
    null = constrained(None, region("6"))
    assert (null.field, null.operator, null.answer) == ("", "", False)
    unknown = constrained(constraint("WHAT", values=["a"]), region("a"))
    assert (unknown.answer, unknown.among, unknown.found) == (False, None, "a")


def test_a_date() -> None:
    """The time took part, that of the context or the present one."""
    asked = constraint("DATE_AFTER", "whatever", value="2022-01-22T14:00:00Z")
    step = constrained(asked, Context(now=MOMENT))
    assert (step.field, step.found, step.by_time) == ("currentTime", "2022-01-22T14:00:00Z", True)
    assert step.values == ("2022-01-22T14:00:00Z",)
    assert constrained(asked, Context(current_time=MOMENT + 1, now=0)).found == "2022-01-22T14:00:00.001Z"
    assert whole(feature("f", strategy("default", asked)), Context()).by_time


def test_a_segment() -> None:
    """Each of its constraints answers; the failing ones are named by their places."""
    segments: list[object] = [
        {"id": 1, "name": "beta", "constraints": [constraint("IN", values=["eu"]), constraint("NUM_GT", "age", value=1)]}
    ]
    made = unfolded(feature("f", strategy(segments=[1, 2])), segments=segments)
    [found] = explain_whole(made, region("us"))
    [strategy_step] = found.strategies()
    one, missing, rule = strategy_step.steps
    assert isinstance(one, SegmentStep) and isinstance(missing, SegmentStep) and isinstance(rule, RuleStep)
    assert (one.identity, one.name, one.missing, one.answer) == ("1", "beta", False, False)
    assert [(step.answer, step.reached) for step in one.steps] == [(False, True), (False, False)]
    assert (missing.identity, missing.missing, missing.answer, missing.reached) == ("2", True, False, False)
    places = ("segments[0].constraints[0]", "segments[0].constraints[1]", "segments[1]")
    assert strategy_step.failing == places


@pytest.mark.parametrize(
    ("rule", "context", "expected"),
    [
        (rollout("90", groupId="g", stickiness="userId"), Context(user_id="7"), ("g", "userId", "userId", 81, 90, 81, True)),
        (rollout("10", groupId="g"), Context(user_id="7"), ("g", "default", "userId", 81, 10, 81, False)),
        (rollout("10", groupId="g"), Context(session_id="7"), ("g", "default", "sessionId", 81, 10, 81, False)),
        (rollout("0", groupId="g"), Context(user_id="7"), ("g", "default", "userId", 81, 0, 81, False)),
        (rollout("100", groupId="g"), Context(user_id="7"), ("g", "default", "userId", 81, 100, 81, True)),
        (rollout("100", groupId="g"), Context(), ("g", "default", None, None, 100, None, True)),
        (rollout("100", stickiness="region"), Context(), ("", "region", None, None, 100, None, False)),
        (strategy("gradualRolloutUserId", parameters={"percentage": "90", "groupId": "g"}), Context(user_id="7"),
         ("g", "userId", "userId", 81, 90, 81, True)),
        (strategy("gradualRolloutUserId", parameters={"percentage": "90"}), Context(properties={"userId": "7"}),
         ("", "userId", None, None, 90, None, False)),
        (strategy("gradualRolloutSessionId", parameters={"groupId": "g"}), Context(session_id="7"),
         ("g", "sessionId", "sessionId", 81, 0, 81, False)),
    ],
)  # fmt: skip
def test_a_rollout(rule: dict[str, Any], context: Context, expected: tuple[object, ...]) -> None:
    """Group, stickiness, the identifier's field, bucket, share and the smallest share that would admit, also at 0 and 100 %."""
    step = only(whole(feature("f", rule), context))
    assert isinstance(step, RolloutStep)
    told = (step.group, step.sticks_to, step.field, step.bucket, step.share, step.smallest_share, step.answer)
    assert told == expected
    assert not step.by_chance


@pytest.mark.parametrize("rule", [rollout("50"), strategy("gradualRolloutRandom", parameters={"percentage": "50"})])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_by_chance(rule: dict[str, Any], seed: int) -> None:
    """The step has the deciding draw, and chance took part."""
    found = whole(feature("f", rule), Context(entropy=seed))
    step = only(found)
    assert step.by_chance and found.by_chance and step.smallest_share is None and step.field is None
    assert step.answer is (step.bucket <= 50) is found.enabled


def test_rules_with_a_list() -> None:
    """The standard field itself is compared, never a property of its name; the host is the proxy's."""
    users = strategy("userWithId", parameters={"userIds": "1,2,3,4,5,6,7"})
    step = only(whole(feature("f", users), Context(user_id="7")))
    assert isinstance(step, RuleStep)
    assert (step.field, step.values, step.count, step.found, step.answer) == ("userId", tuple("12345"), 7, "7", True)
    assert only(whole(feature("f", users), Context(properties={"userId": "7"}))).found is None
    host = strategy("applicationHostname", parameters={"hostNames": "a"})
    assert only(whole(feature("f", host), Context(), hostname="A")).found == "A"
    assert only(whole(feature("f", strategy()), Context())).field is None


def test_custom_code() -> None:
    """A fault is in the step, and in no other one; it does not count as a fault of the snapshot."""
    pure = SimpleNamespace(name="pure", pure=True, is_enabled=lambda parameters, context: True)
    own = {"broken": Broken(), "pure": pure}
    made = unfolded(feature("f", strategy("broken"), strategy("pure"), strategy("broken")), custom_strategies=own)
    check_whole(made, Context())
    [found] = explain_whole(made, Context())
    steps = [each.steps[0] for each in found.strategies()]
    assert all(isinstance(step, CustomStep) for step in steps)
    told = [(step.name, step.fault, step.pure, step.answer) for step in steps if isinstance(step, CustomStep)]
    broken = ("broken", "ValueError: no", False, False)
    assert told == [broken, ("pure", None, True, True), broken]
    assert found.strategy == 2
    assert not made.compiled.snapshot.take_faults()


def test_an_exception_turns_off_one_toggle() -> None:
    """As in an evaluation: a property that is no text, which only custom code can make, harms the toggle that reads it."""
    odd: Any = {"region": 7}
    made = unfolded(feature("f", strategy("default", constraint("STR_CONTAINS", values=["a"]))), feature("g"))
    broken, fine = explain_whole(made, Context(properties=odd))
    assert (broken.enabled, broken.variant) == (False, "disabled")
    assert broken.fault is not None and broken.decided == f"its evaluation raised {broken.fault}"
    assert fine.enabled


def test_everything_is_answered_after_the_one_that_decided() -> None:
    """Strategies and conditions that the evaluation does not reach have answers, and say that it does not."""
    found = whole(
        feature(
            "f",
            strategy("default", constraint("IN", values=["us"]), constraint("IN", values=["eu"])),
            strategy(id="7", title="all", disabled=True),
            rollout("100", stickiness="userId"),
        ),
        region("eu"),
    )
    first, second, third = found.strategies()
    assert [(step.answer, step.reached) for step in first.steps] == [(False, True), (True, False), (True, False)]
    assert (second.identity, second.title, second.disabled, second.place) == ("7", "all", True, 2)
    assert (third.answer, third.reached, third.failing) == (False, False, ("rule",))
    assert (found.strategy, found.decided) == (2, 'strategy 2 "all", default, is on')


def test_a_disabled_feature() -> None:
    """Its strategies answer, too. None of it is reached."""
    off = {"name": "f", "enabled": False, "strategies": [strategy(), strategy("userWithId")]}
    found = whole(off, Context())
    assert isinstance(found.steps[0], ToggleStep) and not found.steps[0].answer
    assert found.decided == "the feature is disabled"
    assert [(step.answer, step.reached) for step in found.strategies()] == [(True, False), (False, False)]
    assert whole({"name": "f", "enabled": True}, Context()).decided == "the feature is disabled"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fold", [True, False])
def test_what_is_not_reached_draws_nothing(seed: int, fold: bool) -> None:
    """A rollout by chance behind a condition that fails, or behind a decision, does not change the next draw."""
    draw = rollout("50", stickiness="random")
    behind = draw | {"constraints": [constraint("IN", values=["us"])]}
    variants = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]
    single = feature("p", rollout("100"), variants=variants[:1])
    made = unfolded(
        single,
        feature("q", draw, variants=variants),
        {"name": "off", "enabled": False, "strategies": [draw], "dependencies": [{"feature": "q"}]},
        feature("f", behind, draw, draw, dependencies=[{"feature": "p"}, {"feature": "q"}], variants=variants),
        feature("g", strategy(), draw, dependencies=[{"feature": "p", "enabled": False}, {"feature": "q"}]),
        feature("h", draw, behind | {"variants": variants}),
        fold=fold,
    )
    check_whole(made, Context(entropy=seed))


def test_dependencies() -> None:
    """The wanted and the present state of the parent, with all its steps; what no parent can satisfy; and what is not reached."""
    variants = [{"name": "a", "weight": 1}]
    made = unfolded(
        feature("p", strategy("default", constraint("IN", values=["eu"])), variants=variants),
        feature("child", dependencies=[{"feature": "p", "variants": ["a", "b"]}, {"feature": "p", "enabled": False}]),
        feature("broken", dependencies=[{"feature": "gone"}, {"feature": "child"}]),
    )
    check_whole(made, region("eu"))
    _, child, broken = explain_whole(made, region("eu"))
    one, other = [step for step in child.steps if isinstance(step, DependencyStep)]
    assert (one.words, one.answer, one.reached, one.variants) == ("toggle p is on with variant a or b", True, True, ("a", "b"))
    assert one.found is not None and (one.found.enabled, one.found.variant) == (True, "a")
    assert (other.words, other.answer, other.enabled) == ("toggle p is off", False, False)
    assert child.decided == f"toggle p is {one.found.outcome()}"
    gone, nested = [step for step in broken.steps if isinstance(step, DependencyStep)]
    assert (gone.problem, gone.found, gone.answer) == ("toggle gone is missing", None, False)
    assert (nested.problem, nested.reached) == ("toggle child has a parent itself", False)
    assert broken.decided == "toggle gone is missing"


def drawn(flag: dict[str, Any], context: Context) -> VariantStep:
    """Return the draw of a variant that was reached."""
    steps: list[Step] = [step for root in whole(flag, context).steps for step in root.walk()]
    [found] = [step for step in steps if isinstance(step, VariantStep) and step.reached]
    return found


VARIANTS = [{"name": "a", "weight": 300}, {"name": "x", "weight": 0}, {"name": "b", "weight": 700}]


def test_a_variant() -> None:
    """The bucket, the ranges of all variants, the one that was drawn, and the identifier's field."""
    step = drawn(feature("f", variants=VARIANTS), Context(user_id="7"))
    assert (step.owner, step.total, step.field, step.sticks_to, step.group) == ("feature", 1000, "userId", "default", "f")
    assert step.ranges == (
        VariantRange(name="a", weight=300, first=1, last=300),
        VariantRange(name="x", weight=0, first=None, last=None),
        VariantRange(name="b", weight=700, first=301, last=1000),
    )
    assert step.bucket is not None and step.drawn == ("a" if step.bucket <= 300 else "b")
    assert drawn(feature("f", variants=VARIANTS), Context(session_id="7")).field == "sessionId"
    assert drawn(feature("f", variants=VARIANTS), Context(remote_address="::1")).field == "remoteAddress"
    by_region = drawn(feature("f", variants=[each | {"stickiness": "region"} for each in VARIANTS]), region("eu"))
    assert (by_region.field, by_region.by_chance, by_region.override) == ("region", False, None)


def test_a_variant_by_an_override_by_chance_and_of_a_strategy() -> None:
    """An override needs no bucket; without an identifier the bucket is drawn; a strategy's own variants come first."""
    override = [{"contextName": "userId", "values": ["7"]}]
    overridden = drawn(feature("f", variants=[*VARIANTS[:2], VARIANTS[2] | {"overrides": override}]), Context(user_id="7"))
    assert (overridden.drawn, overridden.override, overridden.bucket, overridden.field) == ("b", "userId", None, None)
    for seed in SEEDS:
        random = drawn(feature("f", variants=VARIANTS), Context(entropy=seed))
        assert random.by_chance and random.field is None and random.bucket is not None
    found = whole(feature("f", rollout("100", groupId="g") | {"variants": VARIANTS[:1]}, variants=VARIANTS), Context(entropy=1))
    own = found.strategies()[0].variant
    assert own is not None and (own.owner, own.drawn, own.group, own.by_chance) == ("strategy", "a", "g", False)
    assert own.bucket is None and tell_variant(own) == "variant a of the strategy: no other one has a weight"
    assert isinstance(found.steps[-1], VariantStep) and not found.steps[-1].reached
    assert found.variant == "a"


def test_unknown_names_and_no_strategies() -> None:
    """A name that the document does not have is off; a feature without strategies is on for everyone."""
    made = unfolded(feature("f"), {"name": None, "enabled": True}, {"enabled": True})
    unknown, known = explain_whole(made, Context(), ["nobody", "f"])
    assert (unknown.enabled, unknown.decided, unknown.steps) == (False, "no toggle of this name", ())
    assert (known.enabled, known.decided) == (True, "it has no strategy, so it is on for everyone")


def test_an_explanation_as_json() -> None:
    """Each step has its kind and its fields in camel case."""
    told = whole(feature("f", rollout("10", groupId="g", stickiness="userId")), Context(user_id="7")).to_json()
    assert told == {
        "name": "f",
        "enabled": False,
        "variant": "disabled",
        "decided": "no strategy is on",
        "strategy": None,
        "byTime": False,
        "byChance": False,
        "fault": None,
        "steps": [
            {"kind": "toggle", "words": "the feature is enabled", "answer": True, "reached": True, "byTime": False,
             "byChance": False},
            {
                "kind": "strategy", "words": "10 % by userId, group g", "answer": False, "reached": True, "byTime": False,
                "byChance": False, "place": 1, "name": "flexibleRollout", "identity": None, "title": None, "disabled": False,
                "failing": ["rule"], "variant": None,
                "steps": [
                    {
                        "kind": "rollout", "words": "10 % by userId, group g", "answer": False, "reached": True, "byTime": False,
                        "byChance": False, "place": "rule", "group": "g", "sticksTo": "userId", "field": "userId", "bucket": 81,
                        "share": 10, "smallestShare": 81,
                    }
                ],
            },
        ],
        "changes": [],
        "rollouts": [
            {"words": "with a rollout of at least 81 % in strategy 1 it would be on", "strategy": 1, "share": 81}
        ],
    }  # fmt: skip


def test_weights_with_a_fraction_may_draw_no_variant() -> None:
    """Then no variant is told, by either explanation."""
    flag = feature("f", strategy()) | {"variants": [{"name": name, "weight": 333.3} for name in "abc"]}
    made = unfolded(flag)
    people = (Context(user_id=str(number)) for number in range(100_000))
    drawn = {made.compiled.snapshot.decide(each, "f")[1]: each for each in islice(people, 20_000)}
    for name, each in drawn.items():
        assert [found.variant for found in explain_whole(made, each, ["f"])] == [name]
    assert len(drawn) == 4
    [plain] = explain(made.compiled.snapshot, next(each for name, each in drawn.items() if name not in ("a", "b", "c")), ["f"])
    assert "none of the feature, by weights that are not whole numbers" in plain.to_text()
