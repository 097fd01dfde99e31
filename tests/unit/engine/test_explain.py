"""An explanation tells the truth: the same outcome as the plain path, and what decided it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.engine.context import Context
from flagsvc.engine.explain import Explanation, explain
from flagsvc.engine.operators import DATE, NETWORKS, NUMBER, OPERATORS, PATTERN, TEXTS, VERSION
from support.evaluating import constraint, feature, region, rollout, snapshot, strategy

MOMENT = 1642860000000.0
NOW = "Sat Jan 22 2022 14:00:00 GMT+0000 (Coordinated Universal Time)"


def explained(flag: dict[str, Any], context: Context, **options: Any) -> Explanation:
    """Explain one feature without folding, and check that the plain path agrees."""
    made = snapshot(flag, **{"fold": False, **options})
    explanation = explain(made, context, [flag["name"]])[0]
    assert (explanation.enabled, explanation.variant) == made.decide(context, flag["name"])
    return explanation


def texts(explanation: Explanation) -> list[str]:
    """Return the text of every step, the inner ones included."""
    return [line.strip() for line in explanation.to_text().splitlines()]


@pytest.mark.parametrize(
    ("asked", "context", "line"),
    [
        (constraint("IN", values=["eu", "us"]), region("eu"), "yes constraint: region in [`eu`, `us`]; it is `eu`"),
        (constraint("NOT_IN", values=["eu"]), region(None), "yes constraint: region not in [`eu`]; it is absent"),
        (constraint("IN", values=list("abcdefg")), region("x"),
         "no  constraint: region in [`a`, `b`, `c`, `d`, `e`, and 2 more]; it is `x`"),
        (constraint("STR_STARTS_WITH", values=["e"]), region("eu"), "yes constraint: region starts with one of [`e`]; it is `eu`"),
        (constraint("STR_ENDS_WITH", values=["u"]), region("eu"), "yes constraint: region ends with one of [`u`]; it is `eu`"),
        (constraint("STR_CONTAINS", values=["u"]), region("eu"), "yes constraint: region contains one of [`u`]; it is `eu`"),
        (constraint("NUM_GTE", value="5"), region("4"), "no  constraint: region >= 5; it is `4`"),
        (constraint("NUM_LT", value="1234567.5"), region("1"), "yes constraint: region < 1234567.5; it is `1`"),
        (constraint("SEMVER_LT", value="2.0.0"), region("1.0.0"), "yes constraint: region < version `2.0.0`; it is `1.0.0`"),
        (constraint("REGEX", value="e."), region("eu"), "yes constraint: region matches `e.`; it is `eu`"),
        (constraint("IN_CIDR", values=["::/0"]), region("eu"), "no  constraint: region in network [`::/0`]; it is `eu`"),
        (constraint("DATE_AFTER", value="2022-01-22T14:00:00Z"), Context(now=MOMENT),
         f"no  constraint: currentTime > {NOW}; it is `{NOW}`"),
        (constraint("DATE_BEFORE", value="2022-01-22T14:00:00Z"), Context(current_time=MOMENT),
         f"no  constraint: currentTime < {NOW}; it is `{NOW}`"),
        (constraint("WHAT"), region("eu"), "no  constraint: unknown operator `WHAT`"),
        (constraint("NUM_EQ", value="x", inverted=True), region("eu"), "yes constraint: always holds"),
        (constraint("NUM_EQ", value="x"), region("eu"), "no  constraint: `x` is not a number"),
        (constraint("REGEX", value="("), region("eu"), "no  constraint: `(` is not a regular expression"),
        (constraint("SEMVER_EQ"), region("eu"), "no  constraint: `` is not a semantic version"),
        (constraint("DATE_AFTER", value="x"), region("eu"), "no  constraint: `x` is not a date"),
        (None, region("eu"), "no  constraint: a constraint that is no object"),
    ],
)  # fmt: skip
def test_a_constraint_in_words(asked: object, context: Context, line: str) -> None:
    """The text has the constraint's test and the context's value."""
    assert line in texts(explained(feature("f", strategy("default", asked)), context))


OPERANDS: dict[str, dict[str, Any]] = {
    TEXTS: {"values": ["a"]},
    NETWORKS: {"values": ["10.0.0.0/8"]},
    NUMBER: {"value": "5"},
    DATE: {"value": "2022-01-22T14:00:00Z"},
    VERSION: {"value": "1.2.3"},
    PATTERN: {"value": "^a"},
}
"""Kind of values → an operand."""


def test_every_operator_has_words_of_its_own() -> None:
    """No operator is explained in the words of another one, or in those for a predicate that `describe_test` does not know."""
    words = []
    for name, operator in OPERATORS.items():
        asked = constraint(name, **OPERANDS[operator.takes])
        [line] = [line for line in texts(explained(feature("f", strategy("default", asked)), Context())) if "constraint:" in line]
        words.append(line.partition("constraint: ")[2])
    assert len(set(words)) == len(OPERATORS)
    assert not [line for line in words if "holds" in line]


MINE = SimpleNamespace(name="mine", is_enabled=lambda parameters, context: True)
"""A custom strategy."""


@pytest.mark.parametrize(
    ("rule", "context", "line"),
    [
        (strategy(), Context(), "yes rule: admits everyone"),
        (strategy("userWithId", parameters={"userIds": "7"}), Context(user_id="8"), "no  rule: userId `8` in [`7`]"),
        (strategy("userWithId", parameters={"userIds": "7"}), Context(), "no  rule: userId (absent) in [`7`]"),
        (strategy("remoteAddress", parameters={"IPs": "::1"}), Context(remote_address="::1"),
         "yes rule: remoteAddress `::1` in [`::1`]"),
        (strategy("remoteAddress"), Context(), "no  rule: no `IPs` are given"),
        (rollout("90", groupId="g", stickiness="userId"), Context(user_id="7"),
         "yes rule: bucket 81 by userId in group `g`, admits up to 90"),
        (rollout("10", groupId="g"), Context(session_id="7"), "no  rule: bucket 81 by sessionId in group `g`, admits up to 10"),
        (rollout("10", groupId="g"), Context(user_id="7"), "no  rule: bucket 81 by userId in group `g`, admits up to 10"),
        (rollout("10", stickiness="region"), Context(), "no  rule: sticks to region, which is absent"),
        (rollout("0"), Context(), "no  rule: rolled out to 0 %"),
        (strategy("nope"), Context(), "no  rule: unknown strategy `nope`"),
        (strategy("applicationHostname"), Context(), "no  rule: this host is not in `hostNames`"),
        (strategy("mine"), Context(), "yes rule: custom strategy"),
    ],
)  # fmt: skip
def test_a_rule_in_words(rule: dict[str, Any], context: Context, line: str) -> None:
    """The text has the input of the strategy's own rule."""
    assert line in texts(explained(feature("f", rule), context, custom_strategies={"mine": MINE}))


def test_variants_in_words() -> None:
    """The text has the candidates of the draw and its stickiness."""
    two = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]
    own = explained(feature("f", variants=two), Context(user_id="7"))
    assert any("of the feature, bucket" in line and "of 2 by userId, sessionId or remoteAddress" in line for line in texts(own))
    by_strategy = explained(feature("f", rollout("100", stickiness="region") | {"variants": two}), region("eu"))
    assert any("of the strategy, bucket" in line and "by region" in line for line in texts(by_strategy))
    random = explained(feature("f", variants=two), Context(entropy=5))
    assert any("a random draw over 2" in line for line in texts(random))
    alone = explained(feature("f", rollout(50, stickiness="random") | {"variants": two[:1]}), Context(entropy=5))
    assert any("a of the strategy, no other one has a weight" in line for line in texts(alone))
    overridden = [two[0], two[1] | {"overrides": [{"contextName": "userId", "values": ["7"]}]}]
    assert any(
        "b of the feature, by an override" in line
        for line in texts(explained(feature("f", variants=overridden), Context(user_id="7")))
    )


def test_dependencies_segments_and_what_was_not_reached() -> None:
    """The explanation ends where the evaluation ends, and says so."""
    segments: list[object] = [{"id": 1, "name": "europe", "constraints": [constraint("IN", values=["eu"])]}]
    child = feature("child", strategy(segments=[1]), strategy(), strategy("userWithId"), dependencies=[{"feature": "p"}])
    made = snapshot(
        feature("p", strategy("default", constraint("IN", "plan", values=["pro"]))), child, segments=segments, fold=False
    )
    free = explain(made, region("eu"), ["child"])[0]
    assert (free.enabled, free.decided) == (False, "dependency on `p` is not satisfied")
    why = ["no  strategy: default", "no  constraint: plan in [`pro`]; it is absent"]
    assert texts(free)[1:] == ["no  dependency: toggle `p` is off, variant disabled — no strategy is on", *why]
    pro = explain(made, Context(properties={"region": "us", "plan": "pro"}))
    assert texts(pro[0])[0] == "p: on, variant disabled — strategy 1, default, is on"
    assert pro[1].decided == "strategy 2, default, is on"
    assert texts(pro[1])[1:] == [
        "yes dependency: toggle `p` is on, variant disabled — strategy 1, default, is on",
        "yes strategy: default",
        "yes constraint: plan in [`pro`]; it is `pro`",
        "yes rule: admits everyone",
        "no  strategy: default",
        "no  segment: 1 europe",
        "no  constraint: region in [`eu`]; it is `us`",
        "yes strategy: default",
        "yes rule: admits everyone",
        "-   strategy: userWithId (not reached)",
    ]


def test_a_parent_is_decided_and_explained_once() -> None:
    """The explanation of a parent after its child gives the outcome the child saw, and why; asked again, it is the same."""
    drawn = feature("p", rollout("50", stickiness="random"))
    made = snapshot(feature("child", dependencies=[{"feature": "p"}]), drawn, fold=False)
    for seed in range(10):
        child, parent, again = explain(made, Context(entropy=seed), ["child", "p", "p"])
        assert child.enabled is parent.enabled
        assert "random draw" in texts(parent)[2] and texts(parent)[1:] == texts(child)[2:4]
        assert again.to_json() == parent.to_json()


def test_constants_and_unknown_names() -> None:
    """A disabled toggle, a toggle that is on for everyone, and an unknown toggle."""
    made = snapshot(feature("on"), {"name": "off", "enabled": False, "strategies": []})
    on, off, unknown = explain(made, Context(), ["on", "off", "nobody"])
    assert (on.decided, unknown.decided) == ("on for everyone", "no toggle of this name")
    assert off.decided == "off for everyone: the feature is disabled"
    assert texts(explained(feature("f"), Context()))[1] == "yes strategy: none given, on for everyone"
    none = explained(feature("f", strategy("userWithId")), Context())
    assert none.decided == "no strategy is on"


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        (feature("f", strategy("unknown")), "nothing in it can ever admit anyone"),
        (feature("f", dependencies=[{"feature": "gone"}]), "its parent `gone` is missing"),
        (feature("f", dependencies=[{"feature": "child"}]), "its parent `child` has a parent itself"),
        (feature("f", dependencies=[{"feature": "p", "enabled": False}]), "its parent `p` never comes out as it must"),
    ],
)
def test_why_a_toggle_is_off_for_everyone(flag: dict[str, Any], reason: str) -> None:
    """The reason is in words if the configuration alone decides."""
    made = snapshot(flag, feature("p"), feature("child", dependencies=[{"feature": "p"}]))
    assert explain(made, Context(), ["f"])[0].decided == f"off for everyone: {reason}"


def test_an_explanation_as_json() -> None:
    """Every step with its kind, text and answer."""
    made = explained(feature("f", strategy("default", constraint("IN", values=["eu"])), strategy()), region("us"))
    assert made.to_json() == {
        "name": "f",
        "enabled": True,
        "variant": "disabled",
        "decided": "strategy 2, default, is on",
        "steps": [
            {
                "kind": "strategy",
                "text": "default",
                "answer": False,
                "steps": [{"kind": "constraint", "text": "region in [`eu`]; it is `us`", "answer": False}],
            },
            {
                "kind": "strategy",
                "text": "default",
                "answer": True,
                "steps": [{"kind": "rule", "text": "admits everyone", "answer": True}],
            },
        ],
    }
