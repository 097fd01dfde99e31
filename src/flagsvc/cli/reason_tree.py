"""Prints whole explanations as a tree: a line for each step, with its answer, its sentence and what the context gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    WholeExplanation,
)
from flagsvc.reasons.words import DEFAULT, OFF, RANDOM, plain, show

MARKS: Final = {True: "✓", False: "✗"}
PLAIN_MARKS: Final = {True: "yes", False: "no "}
"""The marks where the output's encoding does not have the others."""
NOT_REACHED: Final = " (not reached)"


def format_tree(whole: WholeExplanation, marks: dict[bool, str]) -> str:
    """Return an explanation as lines."""
    lines = [f"{plain(whole.name)}: {whole.outcome()}"]
    lines += [line for step in whole.steps for line in step_lines(step, "  ", True, marks)]
    lines += [f"  → {words}" for words in whole.turning_words()]
    inputs = [name for name, took_part in (("the time", whole.by_time), ("chance", whole.by_chance)) if took_part]
    return "\n".join([*lines, *([f"  the answer depends on {' and '.join(inputs)}"] if inputs else [])])


def step_lines(step: Step, indent: str, reached: bool, marks: dict[bool, str]) -> Iterator[str]:
    """Give the lines of a step and of those inside. A step that is not reached says so, if the one around it is."""
    told = TOLD[step.kind](step) if step.kind in TOLD else step.words
    yield f"{indent}{marks[step.answer]} {told}{NOT_REACHED if reached and not step.reached else ''}"
    for inner in step.inner():
        yield from step_lines(inner, indent + "    ", step.reached, marks)


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


def tell_variant(step: VariantStep) -> str:
    """Return the variant that was drawn, and how."""
    drawn = f"variant {show(step.drawn)} of the {step.owner}"
    if step.override is not None:
        return f"{drawn}: by an override for {show(step.override)}"
    how = "was drawn" if step.field is None else f"by {show(step.field)}"
    buckets = [f"{show(each.name)} {each.first}–{each.last}" for each in step.ranges if each.first is not None]
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
