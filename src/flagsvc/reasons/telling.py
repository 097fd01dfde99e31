"""The line of each step of a whole explanation: its sentence, and what the context gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flagsvc.reasons.steps import (
    ConstraintStep,
    CustomStep,
    DependencyStep,
    RolloutStep,
    RuleStep,
    SegmentStep,
    Step,
    StrategyStep,
    VariantStep,
)
from flagsvc.reasons.words import DEFAULT, OFF, RANDOM, plain, show


def tell(step: Step) -> str:
    """Return the line of a step; without one of its own, its sentence."""
    return TOLD[step.kind](step) if step.kind in TOLD else step.words


def tell_dependency(step: DependencyStep) -> str:
    """Return a dependency, and what its parent is."""
    return f"{step.words}: {step.problem if step.found is None else f'it is {step.found.outcome()}'}"


def tell_strategy(step: StrategyStep) -> str:
    """Return a strategy without its conditions, which have lines of their own."""
    return step.label().removesuffix(",") + (OFF if step.disabled else "")


def tell_segment(step: SegmentStep) -> str:
    """Return a segment without its constraints."""
    return step.words if step.missing else f"in segment {show(step.name or step.identity)}"


def tell_found(step: ConstraintStep | RuleStep) -> str:
    """Return a condition, and the context's value."""
    if not step.field:
        return step.words
    return f"{step.words}: it is {'absent' if step.found is None else show(step.found)}"


def tell_rollout(step: RolloutStep) -> str:
    """Return a rollout, the bucket, and the share that would admit it."""
    if step.bucket is None:
        return step.words if step.sticks_to in (DEFAULT, RANDOM) else f"{step.words}: {show(step.sticks_to)} is absent"
    if step.field is None:
        return f"{step.words}: {step.bucket} of 100 was drawn"
    return f"{step.words}: bucket {step.bucket} of 100 by {show(step.field)}, on from {step.smallest_share} %"


def tell_custom(step: CustomStep) -> str:
    """Return a custom strategy, and what it raised."""
    return step.words if step.fault is None else f"{step.words}: it raised {plain(step.fault)}"


UNEVEN: Final = "by weights that are not whole numbers"


def tell_variant(step: VariantStep) -> str:
    """Return the variant that was drawn, and how."""
    drawn = f"variant {show(step.drawn)} of the {step.owner}"
    if step.override is not None:
        return f"{drawn}: by an override for {show(step.override)}"
    buckets = [f"{show(each.name)} {each.first}–{each.last}" for each in step.ranges if each.first is not None]
    if step.bucket is None:
        return f"{drawn}: " + (UNEVEN if len(buckets) > 1 else "no other one has a weight")
    how = "was drawn" if step.field is None else f"by {show(step.field)}"
    return f"{drawn}: bucket {step.bucket} of {step.total} {how}; {', '.join(buckets)}"


TOLD: Final[dict[str, Callable[[Any], str]]] = {
    DependencyStep.kind: tell_dependency,
    StrategyStep.kind: tell_strategy,
    SegmentStep.kind: tell_segment,
    ConstraintStep.kind: tell_found,
    RuleStep.kind: tell_found,
    RolloutStep.kind: tell_rollout,
    CustomStep.kind: tell_custom,
    VariantStep.kind: tell_variant,
}
"""Kind of a step → its line. The line of any other step is its sentence."""
