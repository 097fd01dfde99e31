"""Explains the outcome of a toggle in words: walks the same nodes one by one and records every answer.

`Snapshot` calls nothing here, so normal evaluation costs no more. Compile with `CompileOptions(fold=False)` for an explanation
that also shows the nodes that the configuration alone decides.
"""

from __future__ import annotations

from typing import Final

from flagsvc.engine.context import Context
from flagsvc.engine.features import FIRST_VARIANT, OFF, ON, Toggle
from flagsvc.engine.predicates import (
    EQUAL,
    GREATER,
    LESS,
    Contains,
    DateComparison,
    EndsWith,
    FieldPredicate,
    InList,
    InNetwork,
    Matches,
    Never,
    NumberComparison,
    Predicate,
    SegmentPredicate,
    SemverComparison,
    StartsWith,
)
from flagsvc.engine.run import Run
from flagsvc.engine.snapshot import Snapshot
from flagsvc.engine.strategies import (
    Addresses,
    CompiledStrategy,
    Custom,
    DefaultRollout,
    Everyone,
    NeverEnabled,
    RandomShare,
    StickyRollout,
    UserIds,
)
from flagsvc.engine.values import jsdate, jsnumber
from flagsvc.engine.variants import NONE, VariantChoice

ORDERS: Final[dict[int, str]] = {
    EQUAL: "=",
    GREATER: ">",
    GREATER | EQUAL: ">=",
    LESS: "<",
    LESS | EQUAL: "<=",
}
MAX_LISTED: Final = 5


def format_values(values: list[str]) -> str:
    """Return the first few values, and the number of the others."""
    quoted = ", ".join([f"`{value}`" for value in values[:MAX_LISTED]])
    more = len(values) - MAX_LISTED
    return f"[{quoted}{f', and {more} more' if more > 0 else ''}]"


def describe_test(predicate: Predicate) -> str:
    """Return the test of a constraint in words."""
    if isinstance(predicate, InList):
        return f"in {format_values(sorted(predicate.values))}"
    if isinstance(predicate, StartsWith):
        return f"starts with one of {format_values(list(predicate.values))}"
    if isinstance(predicate, EndsWith):
        return f"ends with one of {format_values(list(predicate.values))}"
    if isinstance(predicate, Contains):
        return f"contains one of {format_values(list(predicate.values))}"
    if isinstance(predicate, NumberComparison):
        return f"{ORDERS[int(predicate.accepts)]} {jsnumber.to_text(predicate.value)}"
    if isinstance(predicate, SemverComparison):
        return f"{ORDERS[int(predicate.accepts)]} version `{predicate.text}`"
    if isinstance(predicate, DateComparison):
        return f"{ORDERS[int(predicate.accepts)]} {jsdate.to_text(predicate.value)}"
    if isinstance(predicate, Matches):
        return f"matches `{predicate.text}`"
    return f"in network {format_values(list(predicate.values))}" if isinstance(predicate, InNetwork) else "holds"


def describe(predicate: Predicate, run: Run) -> str:
    """Return a constraint in words, with the context's value."""
    if isinstance(predicate, Never):
        return predicate.reason
    if not isinstance(predicate, FieldPredicate):
        return "always holds"
    found = run.context.read(predicate.kind, predicate.name)
    if isinstance(predicate, DateComparison):
        given = run.context.current_time
        found = jsdate.to_text(run.context.now if given is None else given)
    has = "is absent" if found is None else f"is `{found}`"
    return f"{predicate.name} {'not ' if predicate.negate else ''}{describe_test(predicate)}; it {has}"


def describe_rule(strategy: CompiledStrategy, run: Run) -> tuple[bool, str]:
    """Apply a strategy's own rule. Returns its answer and a description."""
    if isinstance(strategy, NeverEnabled):
        return False, strategy.reason
    if isinstance(strategy, Everyone):
        return True, "admits everyone"
    if isinstance(strategy, RandomShare):
        bucket = int(run.draw(100))
        return bucket <= strategy.share, f"random draw {bucket}, admits up to {strategy.share}"
    if isinstance(strategy, StickyRollout):
        return describe_rollout(strategy, run)
    admits = strategy.admits(run)
    if isinstance(strategy, UserIds):
        return admits, f"userId {format_value(run.context.user_id)} in {format_values(sorted(strategy.users))}"
    if isinstance(strategy, Addresses):
        return (
            admits,
            f"remoteAddress {format_value(run.context.remote_address)} in {format_values(sorted(strategy.addresses.texts))}",
        )
    return admits, "custom strategy" if isinstance(strategy, Custom) else "rule of its own"


def describe_rollout(strategy: StickyRollout, run: Run) -> tuple[bool, str]:
    """Apply a rollout. Returns its answer and the bucket."""
    by_default = isinstance(strategy, DefaultRollout)
    identifier = run.user_or_session() if by_default else strategy.identifier(run)
    if identifier is None and not by_default:
        return False, f"sticks to {strategy.field}, which is absent"
    bucket = int(run.draw(100) if identifier is None else strategy.prefix.bucket(identifier, 100))
    field = strategy.field
    if by_default:
        field = "a random draw" if identifier is None else "userId" if run.context.user_id else "sessionId"
    return (
        bucket <= strategy.share,
        f"bucket {bucket} by {field} in group `{strategy.prefix.group}`, admits up to {strategy.share}",
    )


def format_value(value: str | None) -> str:
    """Return a context value in words."""
    return "(absent)" if value is None else f"`{value}`"


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
        return ExplanationStep("segment", f"{condition.identity} {condition.name}".rstrip(), condition.holds(run), parts)
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
