"""Checks a whole explanation against the evaluation, and against itself."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.explain import explain
from flagsvc.reasons.steps import ConstraintStep, RolloutStep, SegmentStep, Step, StrategyStep, VariantStep, WholeExplanation
from flagsvc.reasons.turning import with_field
from flagsvc.reasons.unfolded import Unfolded
from flagsvc.reasons.whole import explain_whole
from support.evaluating import toggles


def unfolded(*features: object, segments: list[object] | None = None, **options: Any) -> Unfolded:
    document = {"version": 2, "features": list(features), "segments": segments or []}
    return Unfolded(document, CompileOptions(**options))


def whole(flag: dict[str, Any], context: Context, **options: Any) -> WholeExplanation:
    """Return the whole explanation of one feature, after all checks."""
    made = unfolded(flag, **options)
    check_whole(made, context)
    return explain_whole(made, context, [flag["name"]])[0]


class Figures(NamedTuple):
    """The numbers of toggles that were checked, and of changes and rollouts that were told."""

    toggles: int
    changes: int
    rollouts: int


def check_whole(made: Unfolded, context: Context) -> Figures:
    """Check every toggle for a context, and all that is told to turn it."""
    snapshot = made.compiled.snapshot
    together = explain_whole(made, context)
    served = toggles(snapshot.all(context))
    assert [each.name for each in together] == list(served)
    for each in together:
        assert each.enabled is served[each.name]["enabled"]
        assert each.variant == served[each.name]["variant"]["name"]
        [alone] = explain_whole(made, context, [each.name])
        [plain] = explain(snapshot, context, [each.name])
        assert (alone.enabled, alone.variant) == (plain.enabled, plain.variant) == snapshot.decide(context, each.name)
        check_steps(alone)
        check_changes(made, alone, context)
        json.dumps(alone.to_json())
    told = [sum([len(each.changes) for each in together]), sum([len(each.rollouts) for each in together])]
    return Figures(len(together), *told)


def check_steps(explanation: WholeExplanation) -> None:
    """Check that each step fits those inside, and that one strategy decided at most."""
    assert explanation.fault is None
    decided = [step.place for step in explanation.strategies() if step.reached and step.answer]
    assert decided == ([] if explanation.strategy is None else [explanation.strategy])
    for root in explanation.steps:
        for step in root.walk():
            check_step(step)


def check_step(step: Step) -> None:
    assert step.words
    if isinstance(step, StrategyStep):
        assert step.answer is all([each.answer for each in step.steps]) is (not step.failing)
    elif isinstance(step, SegmentStep):
        assert step.answer is (not step.missing and all([each.answer for each in step.steps])) is (not step.failing())
    elif isinstance(step, RolloutStep):
        assert step.bucket is None or step.answer is (step.bucket <= step.share)
        assert step.smallest_share == (None if step.field is None else step.bucket)
    elif isinstance(step, VariantStep) and step.override is None:
        [drawn] = [
            each
            for each in step.ranges
            if each.first is not None and each.first <= (each.first if step.bucket is None else step.bucket) <= (each.last or 0)
        ]
        assert drawn.name == step.drawn
    elif isinstance(step, ConstraintStep):
        assert len(step.values) == min(step.count, 5)


def check_changes(made: Unfolded, explanation: WholeExplanation, context: Context) -> None:
    """Check that each change that is told turns the answer, and is of one field."""
    for change in explanation.changes:
        changed = with_field(context, change.field, change.value)
        assert changed is not None
        now = made.compiled.snapshot.decide(changed, explanation.name)
        assert now == (change.enabled, change.variant)
        assert change.enabled is not explanation.enabled
    for rollout in explanation.rollouts:
        for share, enabled in ((rollout.share, True), (rollout.share - 1, False)):
            changed_document = with_rollout(made, explanation.name, rollout.strategy, share)
            now = compile_document(changed_document, made.options).snapshot.decide(context, explanation.name)
            assert now[0] is enabled


def with_rollout(made: Unfolded, name: str, place: int, share: int) -> dict[str, Any]:
    """Return the document with another rollout in one strategy of a feature, wherever that feature stands."""
    lineage = made.compiled.snapshot.lineage
    features: list[Any] = copy.deepcopy(lineage.sources)
    for each in features:
        strategies = each.get("strategies") if isinstance(each, dict) and each.get("name") == name else None
        if isinstance(strategies, list) and len(strategies) >= place:
            changed = strategies[place - 1]
            parameter = "rollout" if changed["name"] == "flexibleRollout" else "percentage"
            given = changed.get("parameters")
            changed["parameters"] = (given if isinstance(given, dict) else {}) | {parameter: share}
    return {"features": features, "segments": lineage.segment_sources}
