"""Explains the outcome of a toggle: walks the same nodes one by one and records every answer.

`Snapshot` calls nothing here, so normal evaluation costs no more. Compile with `CompileOptions(fold=False)` for an explanation
that also shows the nodes that the configuration alone decides.
"""

from __future__ import annotations

from flagsvc.engine.context import Context
from flagsvc.engine.describe import describe, describe_rule
from flagsvc.engine.features import FIRST_VARIANT, OFF, ON, Toggle
from flagsvc.engine.predicates import Predicate, SegmentPredicate
from flagsvc.engine.run import Run
from flagsvc.engine.snapshot import Snapshot
from flagsvc.engine.strategies import CompiledStrategy
from flagsvc.engine.variants import NONE, VariantChoice


class ExplanationStep:
    """One step: `kind` (dependency, strategy, constraint, segment, rule, variant), a description and the answer.

    `answer` is None if the step was not reached.
    """

    def __init__(self, kind: str, text: str, answer: bool | None, steps: list[ExplanationStep] | None = None) -> None:
        self.kind = kind
        self.text = text
        self.answer = answer
        self.steps: list[ExplanationStep] = [] if steps is None else steps

    def to_json(self) -> dict[str, object]:
        """Return the step as JSON-ready data."""
        plain: dict[str, object] = {"kind": self.kind, "text": self.text, "answer": self.answer}
        if self.steps:
            plain["steps"] = [step.to_json() for step in self.steps]
        return plain

    def lines(self, indent: str) -> list[str]:
        """Return the step and its substeps as indented lines."""
        mark = "-" if self.answer is None else ("yes" if self.answer else "no")
        own = f"{indent}{mark:<3} {self.kind}: {self.text}"
        return [own, *[line for step in self.steps for line in step.lines(indent + "    ")]]


class Explanation:
    """The outcome of one toggle, the reason, and every step."""

    def __init__(self, name: str, enabled: bool, variant: str, decided: str, steps: list[ExplanationStep]) -> None:
        self.name = name
        self.enabled = enabled
        self.variant = variant
        self.decided = decided
        self.steps = steps

    def to_json(self) -> dict[str, object]:
        """Return the explanation as JSON-ready data."""
        return {
            "name": self.name,
            "enabled": self.enabled,
            "variant": self.variant,
            "decided": self.decided,
            "steps": [step.to_json() for step in self.steps],
        }

    def outcome(self) -> str:
        """Return the outcome and the reason in words."""
        return f"{'on' if self.enabled else 'off'}, variant {self.variant} — {self.decided}"

    def to_text(self) -> str:
        """Return the explanation as lines for people."""
        lines = [line for step in self.steps for line in step.lines("  ")]
        return "\n".join([f"{self.name}: {self.outcome()}", *lines])


def explain(snapshot: Snapshot, context: Context, names: list[str] | None = None) -> list[Explanation]:
    """Return the explanation of each toggle for the context: of the named ones, or of all, in the document's order."""
    run = Run(context, snapshot.memory)
    asked = list(snapshot.toggles) if names is None else names
    known: dict[str, Explanation] = {}
    return [explain_one(snapshot.toggles.get(name), name, run, known) for name in asked]


def explain_one(toggle: Toggle | None, name: str, run: Run, known: dict[str, Explanation]) -> Explanation:
    """Return the explanation of one toggle.

    `known` keeps outcomes, because a toggle is decided once for itself and its children.
    """
    if toggle is None:
        return Explanation(name, False, "disabled", "no toggle of this name", [])
    if name not in known:
        steps: list[ExplanationStep] = []
        number, decided = walk(toggle, run, steps, known)
        outcome = toggle.outcomes[number]
        variant = "disabled" if outcome.variant is None else outcome.variant
        known[name] = Explanation(name, outcome.enabled, variant, decided, steps)
    return known[name]


def walk(toggle: Toggle, run: Run, steps: list[ExplanationStep], known: dict[str, Explanation]) -> tuple[int, str]:
    """Decide a toggle as `Toggle.decide` does, and record every step. Return the outcome and the reason for it."""
    if toggle.constant >= 0:
        return int(toggle.constant), constant_reason(toggle)
    number, decided = walk_all(toggle, run, steps, known)
    if toggle.memo >= 0:
        run.parents[toggle.memo] = number
    return number, decided


def constant_reason(toggle: Toggle) -> str:
    """Return why a toggle has only one outcome."""
    if toggle.constant != OFF:
        return "on for everyone"
    return f"off for everyone: {toggle.reason}"


def walk_all(toggle: Toggle, run: Run, steps: list[ExplanationStep], known: dict[str, Explanation]) -> tuple[int, str]:
    """Evaluate the dependencies, then the strategies, and record the steps."""
    for parent in toggle.parents:
        why = explain_one(parent.toggle, parent.toggle.name, run, known)
        satisfied = parent.satisfied(run)
        steps.append(ExplanationStep("dependency", f"toggle `{why.name}` is {why.outcome()}", satisfied, why.steps))
        if not satisfied:
            return OFF, f"dependency on `{parent.toggle.name}` is not satisfied"
    decided = -1
    reason = "no strategy is on"
    for at, strategy in enumerate(toggle.strategies):
        if decided >= 0:
            steps.append(ExplanationStep("strategy", f"{strategy.name or 'none given'} (not reached)", None))
            continue
        parts: list[ExplanationStep] = []
        active = walk_strategy(strategy, run, parts)
        steps.append(ExplanationStep("strategy", strategy.name or "none given, on for everyone", active, parts))
        if active:
            decided = walk_variants(toggle, strategy, run, steps)
            reason = f"strategy {at + 1}, {strategy.name or 'none given'}, is on"
    return (OFF if decided < 0 else decided), reason


def walk_strategy(strategy: CompiledStrategy, run: Run, parts: list[ExplanationStep]) -> bool:
    """Evaluate a strategy's conditions, then its rule, and record the steps."""
    for condition in strategy.conditions:
        step = walk_condition(condition, run)
        parts.append(step)
        if not step.answer:
            return False
    admits, text = describe_rule(strategy, run)
    parts.append(ExplanationStep("rule", text, admits))
    return admits


def walk_condition(condition: Predicate, run: Run) -> ExplanationStep:
    """Record a constraint, or a segment with its constraints."""
    if isinstance(condition, SegmentPredicate):
        parts = [walk_condition(part, run) for part in condition.parts]
        return ExplanationStep(
            "segment", f"{condition.identity} {condition.name}".rstrip(), condition.holds(run), parts
        )
    return ExplanationStep("constraint", describe(condition, run), condition.holds(run))


def walk_variants(toggle: Toggle, strategy: CompiledStrategy, run: Run, steps: list[ExplanationStep]) -> int:
    """Draw the variant as `Toggle.choose_outcome` does, and record a description of the draw."""
    for owner, choice, first in (
        ("strategy", strategy.choice, int(strategy.first)),
        ("feature", toggle.choice, FIRST_VARIANT),
    ):
        if choice is not None:
            index = int(choice.pick(run))
            drawn = "none" if index == NONE else toggle.outcomes[first + index].variant
            text = f"{drawn} of the {owner}, {describe_draw(choice, run)}"
            steps.append(ExplanationStep("variant", text, index != NONE))
            if index != NONE:
                return first + index
    return ON


def describe_draw(choice: VariantChoice, run: Run) -> str:
    """Return a description of a variant's draw for people."""
    if any([override.matches(run) for override in choice.overrides]):
        return "by an override"
    if choice.uneven is not None:
        return "by weights that are not whole numbers"
    identifier = choice.identifier(run)
    if identifier is None and choice.only >= 0:
        return "no other one has a weight"
    if identifier is None:
        return f"a random draw over {choice.total}"
    field = "userId, sessionId or remoteAddress" if choice.by_default else choice.field
    return f"bucket {choice.prefix.bucket(identifier, choice.total)} of {choice.total} by {field}"
