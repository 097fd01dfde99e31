"""The steps of a strategy's conditions (constraints, segments, its own rule), and of a variant's draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from flagsvc.engine.hashing import Identifier
from flagsvc.engine.model import ConstraintSpec, StrategySpec, VariantSpec
from flagsvc.engine.operators import LISTS, OPERATORS, kind_of
from flagsvc.engine.predicates import DateComparison, FieldPredicate, Predicate, SegmentPredicate
from flagsvc.engine.run import Run
from flagsvc.engine.strategies import Custom, DefaultRollout, StickyRollout
from flagsvc.engine.variants import HASHES, NONE, VariantChoice
from flagsvc.reasons.steps import (
    ConditionStep,
    ConstraintStep,
    CustomStep,
    RolloutStep,
    RuleStep,
    SegmentStep,
    VariantRange,
    VariantStep,
)
from flagsvc.reasons.unfolded import Unfolded, UnfoldedStrategy
from flagsvc.reasons.words import (
    LISTED,
    constraint_words,
    listed_values,
    operands,
    rollout_of,
    rule_words,
    segment_words,
    show_moment,
    variants_words,
)


@contextmanager
def aside(run: Run, apart: bool) -> Iterator[None]:
    """Do a part of a walk. If it is `apart`, because an evaluation does not do it, its draws do not count."""
    draws = run.draws
    yield
    if apart:
        run.draws = draws


def redraw(run: Run, before: int, total: int) -> int | None:
    """Return the number, 1 to `total`, that was drawn after `before` draws; None if none was."""
    if run.draws == before:
        return None
    run.draws = before
    return int(run.draw(total))


def variant_step(
    run: Run, owner: str, specs: Sequence[VariantSpec], choice: VariantChoice | None, reached: bool
) -> VariantStep | None:
    """Return the step of a variant's draw; None if no variant has a weight, or no variant is drawn."""
    if choice is None:
        return None
    override = next((each.field for each in choice.overrides if each.matches(run)), None)
    identifier = None if override is not None else choice.identifier(run)
    with aside(run, not reached):
        before = int(run.draws)
        index = int(choice.pick(run))
        drawn = redraw(run, before, HASHES if choice.uneven else choice.total)
    if index == NONE:
        return None
    bucket = None if choice.uneven else drawn
    if identifier is not None and not choice.uneven:
        bucket = int(choice.prefix.bucket(identifier, choice.total))
    return VariantStep(
        words=variants_words(specs, choice.field),
        answer=True,
        reached=reached,
        by_chance=drawn is not None,
        owner=owner,
        drawn=specs[index].name,
        group=choice.prefix.group,
        sticks_to=choice.field,
        field=None if identifier is None else source(choice, run),
        bucket=bucket,
        total=int(choice.total),
        override=override,
        ranges=ranges(specs, choice),
    )


def source(choice: VariantChoice, run: Run) -> str:
    """Return the field that the identifier of a draw came from."""
    if not choice.by_default:
        return choice.field
    return "userId" if run.context.user_id else "sessionId" if run.context.session_id else "remoteAddress"


def ranges(specs: Sequence[VariantSpec], choice: VariantChoice) -> tuple[VariantRange, ...]:
    limits = {int(index): int(limit) for index, limit in zip(choice.indexes, choice.limits, strict=True)}
    found = []
    before = 0
    for at, spec in enumerate(specs):
        limit = limits.get(at)
        first = None if limit is None else before + 1
        before = before if limit is None else limit
        found.append(VariantRange(name=spec.name, weight=spec.weight, first=first, last=limit))
    return tuple(found)


KEPT: Final = 5
"""Values of a list that a step has."""
RULE: Final = "rule"
"""The place of a strategy's own rule."""
CURRENT_TIME: Final = "currentTime"


class ConditionWalk:
    """Makes the steps for one run."""

    def __init__(self, unfolded: Unfolded, run: Run) -> None:
        self.unfolded = unfolded
        self.run = run

    def conditions(self, strategy: UnfoldedStrategy, reached: bool) -> Iterator[ConditionStep]:
        """Give the steps of the constraints, then of the segments."""
        spec = strategy.spec
        nodes = strategy.node.conditions
        for at, constraint in enumerate(spec.constraints):
            step: ConditionStep = self.constraint(constraint, nodes[at], f"constraints[{at}]", reached)
            reached = reached and step.answer
            yield step
        for at, identity in enumerate(spec.segments):
            step = self.segment(identity, nodes[len(spec.constraints) + at], f"segments[{at}]", reached)
            reached = reached and step.answer
            yield step

    def segment(self, identity: str, node: Predicate, place: str, reached: bool) -> SegmentStep:
        segment = self.unfolded.segments.get(identity)
        steps: list[ConstraintStep] = []
        inside = reached
        if segment is not None and isinstance(node, SegmentPredicate):
            for at, (constraint, part) in enumerate(zip(segment.constraints, node.parts, strict=True)):
                step = self.constraint(constraint, part, f"{place}.constraints[{at}]", inside)
                inside = inside and step.answer
                steps.append(step)
        return SegmentStep(
            words=segment_words(segment, identity),
            answer=node.holds(self.run),
            reached=reached,
            place=place,
            identity=identity,
            name="" if segment is None else segment.name,
            missing=segment is None,
            steps=tuple(steps),
        )

    def constraint(self, spec: ConstraintSpec | None, node: Predicate, place: str, reached: bool) -> ConstraintStep:
        """Return the step of a constraint. A null constraint has neither field nor operator."""
        given = ConstraintSpec(place, "", "", (), None, False, False) if spec is None else spec
        operator = OPERATORS.get(given.operator)
        listed = operator is not None and operator.takes in LISTS and isinstance(node, FieldPredicate)
        answer = node.holds(self.run)
        values = operands(given)
        is_time = isinstance(node, DateComparison)
        field = CURRENT_TIME if is_time else given.field
        return ConstraintStep(
            words=constraint_words(spec),
            answer=answer,
            reached=reached,
            by_time=is_time,
            place=place,
            field=field,
            operator=given.operator,
            values=values[:KEPT],
            count=len(values),
            among=answer != node.negate if listed and isinstance(node, FieldPredicate) else None,
            inverted=given.inverted,
            any_case=given.insensitive and operator is not None and operator.any_case,
            found=self.moment() if is_time else self.run.context.read(kind_of(field), field),
        )

    def moment(self) -> str:
        """Return the time of the evaluation."""
        given = self.run.context.current_time
        return show_moment(self.run.context.now if given is None else given)

    def rule(self, strategy: UnfoldedStrategy, reached: bool) -> ConditionStep:
        if isinstance(strategy.node, Custom):
            return self.custom(strategy.spec, strategy.node, reached)
        return self.listed(strategy, reached) if strategy.probe is None else self.rollout(strategy, reached)

    def words(self, spec: StrategySpec) -> str:
        """Return the rule as a sentence."""
        return rule_words(spec, self.unfolded.options.custom_strategies)

    def custom(self, spec: StrategySpec, node: Custom, reached: bool) -> CustomStep:
        answer = node.admits(self.run)
        faults = self.run.memory.faults
        fault = f"{type(faults[-1].error).__name__}: {faults[-1].error}" if faults else None
        self.run.memory.faults = []
        return CustomStep(
            words=self.words(spec),
            answer=answer,
            reached=reached,
            place=RULE,
            name=spec.name,
            pure=bool(getattr(node.implementation, "pure", False)),
            fault=fault,
        )

    def rollout(self, strategy: UnfoldedStrategy, reached: bool) -> RolloutStep:
        """Return the step of a rollout. The probe gives the bucket, also where the share alone decides."""
        run = self.run
        identifier, field = self.identifier(strategy)
        before = int(run.draws)
        answer = strategy.node.admits(run)
        drawn = redraw(run, before, 100)
        bucket = drawn
        if identifier is not None and isinstance(strategy.probe, StickyRollout):
            bucket = int(strategy.probe.bucket(identifier))
        share, sticks_to, group = rollout_of(strategy.spec)
        return RolloutStep(
            words=self.words(strategy.spec),
            answer=answer,
            reached=reached,
            by_chance=drawn is not None,
            place=RULE,
            group=group,
            sticks_to=sticks_to,
            field=None if identifier is None else field,
            bucket=bucket,
            share=share,
            smallest_share=None if identifier is None else bucket,
        )

    def identifier(self, strategy: UnfoldedStrategy) -> tuple[Identifier | None, str]:
        """Return the identifier of a rollout, None if it is absent, and its field."""
        probe = strategy.probe
        if isinstance(probe, DefaultRollout):
            return self.run.user_or_session(), "userId" if self.run.context.user_id else "sessionId"
        return (probe.identifier(self.run), probe.field) if isinstance(probe, StickyRollout) else (None, "")

    def listed(self, strategy: UnfoldedStrategy, reached: bool) -> RuleStep:
        """Return the step of a rule with a list, or of one without anything to say."""
        spec = strategy.spec
        row = LISTED.get(spec.name)
        values = [] if row is None else listed_values(spec)
        return RuleStep(
            words=self.words(spec),
            answer=strategy.node.admits(self.run),
            reached=reached,
            place=RULE,
            name=spec.name,
            field=None if row is None else row.field,
            values=tuple(values[:KEPT]),
            count=len(values),
            found=self.own(spec.name),
        )

    def own(self, name: str) -> str | None:
        """Return what a strategy of LISTED compares with its list: the standard field itself, or the host."""
        context = self.run.context
        found = {
            "userWithId": context.user_id,
            "remoteAddress": context.remote_address,
            "applicationHostname": self.unfolded.options.hostname,
        }
        return found.get(name)
