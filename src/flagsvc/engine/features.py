"""A compiled toggle: dependencies, then strategies, then a variant; and the JSON of each possible outcome.

Outcomes are numbered: OFF, ON (without a variant), then one for each variant of the toggle, then one for each variant of each
strategy. An evaluation returns the number, and everything that an answer needs is looked up by it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.model import Wanted
from flagsvc.engine.predicates import Never
from flagsvc.engine.run import TOGGLE, Run
from flagsvc.engine.strategies import CompiledStrategy, Everyone, NeverEnabled
from flagsvc.engine.variants import VariantChoice

OFF: Final = 0
ON: Final = 1
FIRST_VARIANT: Final = 2
DYNAMIC: Final = -1


@mypyc_attr(acyclic=True)
class ToggleOutcome:
    """One outcome of a toggle: on or off, its variant (None: the fallback), and its JSON."""

    def __init__(self, enabled: bool, variant: str | None, fragment: bytes) -> None:
        self.enabled = enabled
        self.variant = variant
        self.fragment = fragment


@mypyc_attr(acyclic=True)
class ParentToggle:
    """A parent of a toggle. Its outcomes with the state `enabled` satisfy the dependency; with `variants`, only those with these.

    A table of all outcomes would cost as much for each child as the parent has variants.
    """

    def __init__(self, toggle: Toggle, enabled: bool, variants: Wanted) -> None:
        self.toggle = toggle
        self.enabled = enabled
        self.variants = variants

    def satisfied(self, run: Run) -> bool:
        """Return whether the parent's outcome satisfies the dependency."""
        return self.accepts(self.toggle.outcome(run))

    def accepts(self, number: i64) -> bool:
        """Return whether an outcome of the parent satisfies the dependency."""
        return is_accepted(self.toggle.outcomes[number], self.enabled, self.variants)


def is_accepted(outcome: ToggleOutcome, enabled: bool, variants: Wanted) -> bool:
    """Return whether an outcome of a parent satisfies a dependency (behaviour: Dependencies)."""
    if not enabled or not outcome.enabled or not variants:
        return outcome.enabled == enabled
    return ("disabled" if outcome.variant is None else outcome.variant) in variants


LONG_CHAIN: Final = 16
"""The longest chain of strategies that Python releases recursively."""
NO_CHAIN: Final[list[CompiledStrategy]] = []


@mypyc_attr(acyclic=True)
class Toggle:
    """One compiled feature.

    What follows from the feature alone is shared by every snapshot with the feature, and never changes. A toggle with parents
    or children is a `copy`, one for each snapshot: `memo` and `parents` belong to the snapshot.
    """

    def __init__(self, name: str, outcomes: list[ToggleOutcome]) -> None:
        self.name = name
        self.outcomes = outcomes
        self.constant: i64 = DYNAMIC
        # why a constant toggle is off, for explanations
        self.reason = "nothing in it can ever admit anyone"
        self.memo: i64 = -1
        self.parents: list[ParentToggle] = []
        # an attribute is faster to read than the length of a list, and most toggles have no parents
        self.dependent: bool = False
        self.head: CompiledStrategy | None = None
        # a long chain in reverse order, released after `head`: its strategies are released in turn, without recursion
        self.backwards: list[CompiledStrategy] = NO_CHAIN
        self.choice: VariantChoice | None = None

    def copy(self) -> Toggle:
        """Return a copy with the same decisions. A snapshot links it to other toggles."""
        copy = Toggle(self.name, self.outcomes)
        copy.constant = self.constant
        copy.reason = self.reason
        copy.head = self.head
        copy.backwards = self.backwards
        copy.choice = self.choice
        return copy

    @property
    def strategies(self) -> list[CompiledStrategy]:
        found: list[CompiledStrategy] = []
        strategy = self.head
        while strategy is not None:
            found.append(strategy)
            strategy = strategy.following
        return found

    def rule(self) -> CompiledStrategy | None:
        """Return the strategy that alone decides the toggle; None for a less simple toggle."""
        rule = self.head
        if rule is None or rule.following is not None or rule.choice is not None or self.choice is not None:
            return None
        return None if self.constant >= 0 or self.dependent or self.memo >= 0 else rule

    def apply(self, strategies: list[CompiledStrategy]) -> None:
        """Set the strategies, which only this toggle uses. Those that it had are unlinked: Python releases a chain recursively."""
        for strategy in self.strategies:
            strategy.following = None
        after: CompiledStrategy | None = None
        for strategy in reversed(strategies):
            strategy.following = after
            after = strategy
        self.head = after
        self.backwards = strategies[::-1] if len(strategies) > LONG_CHAIN else NO_CHAIN

    def depend(self, parent: ParentToggle) -> None:
        self.parents.append(parent)
        self.dependent = True

    def turn_off(self, reason: str) -> None:
        self.parents = []
        self.constant = OFF
        self.reason = reason

    def fold(self) -> None:
        """Remove strategies that never decide, and make the toggle a constant if only one outcome remains."""
        reachable: list[CompiledStrategy] = []
        for strategy in self.strategies:
            if is_never_on(strategy):
                continue
            reachable.append(strategy)
            if is_always_on(strategy):
                break
        self.apply(reachable)
        if not reachable:
            self.constant = OFF
        elif is_always_on(reachable[0]):
            self.constant = self.constant_outcome(reachable[0])

    def constant_outcome(self, strategy: CompiledStrategy) -> i64:
        """Return the number of the outcome of a strategy that is always on; DYNAMIC if a variant is drawn."""
        if strategy.choice is not None:
            index = strategy.choice.constant_index()
            return DYNAMIC if index < 0 else strategy.first + index
        if self.choice is not None:
            index = self.choice.constant_index()
            return DYNAMIC if index < 0 else FIRST_VARIANT + index
        return ON

    def outcome(self, run: Run) -> i64:
        """Return the number of the outcome for this run. A parent of other toggles is decided once."""
        if self.constant >= 0:
            return self.constant
        if self.memo < 0:
            return self.decide(run)
        known = run.parents[self.memo]
        if known < 0:
            known = self.decide(run)
            run.parents[self.memo] = known
        return known

    def decide(self, run: Run) -> i64:
        """Return the outcome for this run. An exception turns off this toggle only."""
        try:
            if self.dependent:
                for parent in self.parents:
                    if not parent.satisfied(run):
                        return OFF
            strategy = self.head
            while strategy is not None:
                if strategy.active(run):
                    return self.choose_outcome(strategy, run)
                strategy = strategy.following
        except Exception as error:
            run.memory.record_fault(TOGGLE, self.name, error)
        return OFF

    def choose_outcome(self, strategy: CompiledStrategy, run: Run) -> i64:
        """Return the outcome when a strategy is on: the strategy's variant, else the feature's, else none."""
        if strategy.choice is not None:
            index = strategy.choice.pick(run)
            if index >= 0:
                return strategy.first + index
        if self.choice is not None:
            # ON comes before the first variant, as NONE comes before the first index
            return FIRST_VARIANT + self.choice.pick(run)
        return ON


def is_never_on(strategy: CompiledStrategy) -> bool:
    """Return whether a strategy is off for every context."""
    if isinstance(strategy, NeverEnabled):
        return True
    for condition in strategy.conditions:
        if isinstance(condition, Never):
            return True
    return False


def is_always_on(strategy: CompiledStrategy) -> bool:
    return isinstance(strategy, Everyone) and strategy.condition is None
