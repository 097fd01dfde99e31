"""The whole explanation of an answer: every dependency, strategy and condition answers, also after the one that decided.

The walk follows `Toggle.decide` over the unfolded nodes, so the outcome is the served one. What an evaluation does not reach is
answered aside: its random draws do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from flagsvc.engine.context import Context
from flagsvc.engine.features import ToggleOutcome, is_accepted
from flagsvc.engine.model import DependencySpec
from flagsvc.engine.run import Memory, Run
from flagsvc.reasons.conditions import ConditionWalk, aside, variant_step
from flagsvc.reasons.steps import (
    ConditionStep,
    DependencyStep,
    Step,
    StrategyStep,
    ToggleStep,
    VariantStep,
    WholeExplanation,
)
from flagsvc.reasons.turning import find_changes, find_rollouts
from flagsvc.reasons.unfolded import Unfolded, UnfoldedFeature, UnfoldedStrategy
from flagsvc.reasons.words import dependency_words, show, strategy_words

FALLBACK: Final = "disabled"
"""The variant of a toggle without one."""
ENABLED: Final = "the feature is enabled"


def explain_whole(unfolded: Unfolded, context: Context, names: Iterable[str] | None = None) -> list[WholeExplanation]:
    """Return the whole explanation of each toggle for the context: of the named ones, or of all, in the order of the answers.

    Custom strategies are asked more often than by an evaluation: also where none needs them, and for changed contexts.
    """
    walk = Walk(unfolded, context)
    found = []
    for name in unfolded.names if names is None else names:
        made = walk.toggle(name)
        changes = find_changes(unfolded, made, context)
        found.append(replace(made, changes=changes, rollouts=find_rollouts(unfolded, made, context)))
    unfolded.compiled.snapshot.take_faults()  # those of changed contexts
    return found


class Walk:
    """One walk over the toggles for one context. Each is decided once, for itself and for its children."""

    def __init__(self, unfolded: Unfolded, context: Context) -> None:
        self.unfolded = unfolded
        self.run = Run(context, Memory(0, 0, unfolded.maker.utf8))
        self.conditions = ConditionWalk(unfolded, self.run)
        self.known: dict[str, WholeExplanation] = {}

    def toggle(self, name: str, live: bool = True) -> WholeExplanation:
        """Return the explanation of a toggle. `live` tells that the evaluation decides it, too, and at this point."""
        if name in self.known:
            return self.known[name]
        feature = self.unfolded.feature(name)
        if feature is None:
            return WholeExplanation(name=name, enabled=False, variant=FALLBACK, decided="no toggle of this name")
        evaluated = live and self.unfolded.compiled.snapshot.toggles[name].constant < 0
        with aside(self.run, not evaluated):
            made = self.survive(feature, evaluated)
        if live:
            self.known[name] = made
        return made

    def survive(self, feature: UnfoldedFeature, evaluated: bool) -> WholeExplanation:
        """Return the explanation of a feature. As in an evaluation, an exception turns it off."""
        try:
            return self.feature(feature, evaluated)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            words = f"its evaluation raised {fault}"
            return WholeExplanation(name=feature.spec.name, enabled=False, variant=FALLBACK, decided=words, fault=fault)

    def feature(self, feature: UnfoldedFeature, evaluated: bool) -> WholeExplanation:
        """Return the explanation of a feature: dependencies, strategies, then the variant."""
        spec = feature.spec
        before = self.before_strategies(feature, evaluated)
        going = all([step.answer for step in before])
        strategies = self.strategies(feature.strategies, going)
        decider = next((step for step in strategies if step.reached and step.answer), None)
        enabled = going and (decider is not None or not feature.strategies)
        own = None if decider is None else decider.variant
        drawn = variant_step(self.run, "feature", spec.variants, feature.choice, enabled and own is None)
        steps = (*before, *strategies, *([] if drawn is None else [drawn]))
        return WholeExplanation(
            name=spec.name,
            enabled=enabled,
            variant=variant_name(own or drawn, enabled),
            decided=decided(steps, decider, enabled),
            strategy=None if decider is None else decider.place,
            by_time=any([step.by_time for step in reached_steps(steps)]),
            by_chance=any([step.by_chance for step in reached_steps(steps)]),
            steps=steps,
        )

    def before_strategies(self, feature: UnfoldedFeature, evaluated: bool) -> list[Step]:
        """Return what must hold before a strategy counts: the feature is enabled, and its parents satisfy it."""
        enabled = feature.spec.enabled
        steps: list[Step] = [ToggleStep(words=ENABLED, answer=enabled, reached=True)]
        for dependency in feature.spec.dependencies:
            steps.append(self.dependency(dependency, enabled, evaluated))
            enabled = enabled and steps[-1].answer
        return steps

    def dependency(self, spec: DependencySpec, reached: bool, evaluated: bool) -> DependencyStep:
        problem = self.problem(spec)
        found = None if problem else self.toggle(spec.feature, reached and evaluated)
        outcome = None if found is None else ToggleOutcome(found.enabled, found.variant, b"")
        return DependencyStep(
            words=dependency_words(spec),
            answer=outcome is not None and is_accepted(outcome, spec.enabled, spec.wanted()),
            reached=reached,
            feature=spec.feature,
            enabled=spec.enabled,
            variants=spec.variants,
            found=found,
            problem=problem,
        )

    def problem(self, spec: DependencySpec) -> str | None:
        """Return why no outcome of a parent satisfies the dependency; None if one can."""
        parent = self.unfolded.feature(spec.feature)
        if parent is None:
            return f"toggle {show(spec.feature)} is missing"
        return f"toggle {show(spec.feature)} has a parent itself" if parent.spec.dependencies else None

    def strategies(self, strategies: Sequence[UnfoldedStrategy], going: bool) -> list[StrategyStep]:
        """Return the steps of all strategies. Strategies after the first that is on are not reached."""
        steps: list[StrategyStep] = []
        for place, strategy in enumerate(strategies, 1):
            steps.append(self.strategy(place, strategy, going))
            going = going and not steps[-1].answer
        return steps

    def strategy(self, place: int, strategy: UnfoldedStrategy, reached: bool) -> StrategyStep:
        spec = strategy.spec
        steps: list[ConditionStep] = list(self.conditions.conditions(strategy, reached))
        needed = reached and all([step.answer for step in steps])
        with aside(self.run, not needed):
            steps.append(self.conditions.rule(strategy, needed))
        active = all([step.answer for step in steps])
        custom = self.unfolded.options.custom_strategies
        return StrategyStep(
            words=strategy_words(spec, self.unfolded.segments, disabled=strategy.disabled, custom=custom),
            answer=active,
            reached=reached,
            place=place,
            name=spec.name,
            identity=strategy.identity,
            title=strategy.title,
            disabled=strategy.disabled,
            failing=tuple([failing for step in steps for failing in step.failing()]),
            steps=tuple(steps),
            variant=variant_step(self.run, "strategy", spec.variants, strategy.node.choice, reached and active),
        )


def reached_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Give the steps that the evaluation reaches, and those inside that it reaches."""
    for step in steps:
        if step.reached:
            yield step
            yield from reached_steps(step.inner())


def variant_name(variant: VariantStep | None, enabled: bool) -> str:
    return FALLBACK if variant is None or not enabled else variant.drawn


def decided(steps: Iterable[Step], decider: StrategyStep | None, enabled: bool) -> str:
    for step in steps:
        if isinstance(step, ToggleStep) and not step.answer:
            return "the feature is disabled"
        if isinstance(step, DependencyStep) and not step.answer:
            found = step.found
            return step.problem or f"toggle {show(step.feature)} is {'' if found is None else found.outcome()}"
    if decider is not None:
        return f"{decider.label()} is on"
    return "it has no strategy, so it is on for everyone" if enabled else "no strategy is on"
