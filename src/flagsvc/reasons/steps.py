"""The steps of a whole explanation: a tree of typed, immutable records that becomes JSON, and the line of each for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Final

from flagsvc.core.direction import isolate
from flagsvc.reasons.words import DEFAULT, OFF, RANDOM, plain, show


def to_json(value: object) -> object:
    """Return a record as JSON-ready data: its `kind`, then its fields in camel case. Other values stay as they are."""
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if not is_dataclass(value):
        return value
    kind = getattr(value, "kind", "")
    told: dict[str, object] = {"kind": kind} if kind else {}
    return told | {camel_case(each.name): to_json(getattr(value, each.name)) for each in fields(value)}


def camel_case(name: str) -> str:
    """Return the name of a field as JSON has it: `smallest_share` becomes `smallestShare`."""
    first, *others = name.split("_")
    return first + "".join([other.capitalize() for other in others])


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step. `words` are the sentence of the configuration, and `answer` is its answer for the context.

    `reached` tells that the evaluation needs the answer. A step behind the decision has an answer, too. `by_time` and
    `by_chance` tell that it compared the time, or drew a random number; those of steps inside are theirs.
    """

    kind: ClassVar[str] = ""

    words: str
    answer: bool
    reached: bool
    by_time: bool = False
    by_chance: bool = False

    def inner(self) -> tuple[Step, ...]:
        return ()

    def walk(self) -> Iterator[Step]:
        """Give the step and every step inside."""
        yield self
        for step in self.inner():
            yield from step.walk()


@dataclass(frozen=True, kw_only=True)
class ToggleStep(Step):
    """Whether the feature is enabled."""

    kind: ClassVar[str] = "toggle"


@dataclass(frozen=True, kw_only=True)
class DependencyStep(Step):
    """One parent: what it must be, and what it is.

    `found` is None if `problem` says why no parent can satisfy the dependency.
    """

    kind: ClassVar[str] = "dependency"

    feature: str
    enabled: bool
    variants: tuple[str, ...]
    found: WholeExplanation | None
    problem: str | None = None

    def inner(self) -> tuple[Step, ...]:
        return () if self.found is None else self.found.steps


@dataclass(frozen=True, kw_only=True)
class ConditionStep(Step):
    """A constraint, a segment or a strategy's own rule. `place` is its place in the strategy: `constraints[0]`, `rule`, …"""

    place: str

    def failing(self) -> tuple[str, ...]:
        """Return the places of what is not satisfied in it; of a segment those of its constraints."""
        return () if self.answer else (self.place,)


@dataclass(frozen=True, kw_only=True)
class ConstraintStep(ConditionStep):
    """One constraint. `values` are the first of `count` values, `found` is the context's value, None if it is absent.

    `among` tells whether the list has the value that was found, or matches it; None if the operator takes no list.
    """

    kind: ClassVar[str] = "constraint"

    field: str
    operator: str
    values: tuple[str, ...]
    count: int
    among: bool | None
    inverted: bool
    any_case: bool
    found: str | None


@dataclass(frozen=True, kw_only=True)
class SegmentStep(ConditionStep):
    """One segment and its constraints. `missing` tells that the document does not have it."""

    kind: ClassVar[str] = "segment"

    identity: str
    name: str
    missing: bool
    steps: tuple[ConstraintStep, ...]

    def inner(self) -> tuple[Step, ...]:
        return self.steps

    def failing(self) -> tuple[str, ...]:
        """Return the places of the constraints that are not satisfied; that of the segment if it is missing."""
        return super().failing() if self.missing else tuple([step.place for step in self.steps if not step.answer])


@dataclass(frozen=True, kw_only=True)
class RolloutStep(ConditionStep):
    """A rollout to `share` percent.

    `sticks_to` is the field that decides, `default` or `random`; `field` is the field of the identifier, None without
    an identifier. `bucket` is 1 to 100, None if nothing was hashed or drawn. `smallest_share` is the smallest rollout that admits
    the identifier; None without an identifier.
    """

    kind: ClassVar[str] = "rollout"

    group: str
    sticks_to: str
    field: str | None
    bucket: int | None
    share: int
    smallest_share: int | None


@dataclass(frozen=True, kw_only=True)
class RuleStep(ConditionStep):
    """The rule of any other built-in strategy. Of one with a list, the rest is as for a constraint."""

    kind: ClassVar[str] = "rule"

    name: str
    field: str | None = None
    values: tuple[str, ...] = ()
    count: int = 0
    found: str | None = None


@dataclass(frozen=True, kw_only=True)
class CustomStep(ConditionStep):
    """A custom strategy's own code. `fault` is the exception that it raised. A `pure` one reads neither time nor chance."""

    kind: ClassVar[str] = "custom"

    name: str
    pure: bool
    fault: str | None


@dataclass(frozen=True, kw_only=True)
class VariantRange:
    """A variant, and the first and the last bucket that draw it; None if its weight is 0."""

    name: str
    weight: int
    first: int | None
    last: int | None


@dataclass(frozen=True, kw_only=True)
class VariantStep(Step):
    """The draw of a variant of the `owner` (`strategy` or `feature`) among `total` buckets; its answer is true.

    `field` is where the identifier came from. `override` is the field that chose the variant without a draw. `bucket` is None if
    nothing was hashed or drawn, as only one variant has a weight and the identifier is absent.
    """

    kind: ClassVar[str] = "variant"

    owner: str
    drawn: str
    group: str
    sticks_to: str
    field: str | None
    bucket: int | None
    total: int
    override: str | None
    ranges: tuple[VariantRange, ...]


@dataclass(frozen=True, kw_only=True)
class StrategyStep(Step):
    """One strategy: `place` counts from 1; `identity`, `title` and `disabled` are as in the document, if it has them.

    An evaluation does not read `disabled`, because flag servers leave disabled strategies out. `failing` are the places of all
    conditions that are not satisfied. `variant` is what its own variants give.
    """

    kind: ClassVar[str] = "strategy"

    place: int
    name: str
    identity: str | None
    title: str | None
    disabled: bool
    failing: tuple[str, ...]
    steps: tuple[ConditionStep, ...]
    variant: VariantStep | None

    def inner(self) -> tuple[Step, ...]:
        """Return the conditions, then the variant."""
        return self.steps if self.variant is None else (*self.steps, self.variant)

    def label(self) -> str:
        """Return what people call the strategy."""
        title = f' "{isolate(plain(self.title))}"' if self.title else ""
        return f"strategy {self.place}{title}, {isolate(plain(self.name)) or 'without a name'},"


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """A change of one field that turns the answer: `value` None removes it. `enabled` and `variant` are the answer with it.

    It was evaluated. `strategy` is the place of the strategy that it is for, None if it is for a parent.
    """

    words: str
    field: str
    value: str | None
    enabled: bool
    variant: str
    strategy: int | None


@dataclass(frozen=True, kw_only=True)
class RolloutChange:
    """The smallest rollout of a strategy, at a place, that turns a toggle on for this identifier. It was evaluated."""

    words: str
    strategy: int
    share: int


@dataclass(frozen=True, kw_only=True)
class WholeExplanation:
    """One toggle: its answer, what decided it, every step, and the changes of one field that turn the answer.

    `rollouts` turn the toggle on, where nothing else is missing. `strategy` is the place of the strategy that decided,
    None if none did. `by_time` and `by_chance` tell of the steps that were reached. `fault` is an exception that turned the toggle
    off.
    """

    name: str
    enabled: bool
    variant: str
    decided: str
    strategy: int | None = None
    by_time: bool = False
    by_chance: bool = False
    fault: str | None = None
    steps: tuple[Step, ...] = ()
    changes: tuple[FieldChange, ...] = ()
    rollouts: tuple[RolloutChange, ...] = ()

    def strategies(self) -> list[StrategyStep]:
        return [step for step in self.steps if isinstance(step, StrategyStep)]

    def turning_words(self) -> list[str]:
        """Return the sentences of all that turns the answer."""
        return [*[change.words for change in self.changes], *[rollout.words for rollout in self.rollouts]]

    def to_json(self) -> dict[str, object]:
        """Return the explanation as JSON-ready data."""
        told = to_json(self)
        assert isinstance(told, dict)
        return told

    def outcome(self) -> str:
        return f"{'on' if self.enabled else 'off'}, variant {self.variant} — {self.decided}"


def tell(step: Step) -> str:
    """Return the line of a step; without one of its own, its sentence."""
    return TOLD[step.kind](step) if step.kind in TOLD else step.words


def tell_dependency(step: DependencyStep) -> str:
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
