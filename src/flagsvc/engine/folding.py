"""Simplifies a toggle without a context: removes unreachable strategies, and makes a toggle with one outcome a constant."""

from __future__ import annotations

from flagsvc.engine.features import DYNAMIC, FIRST_VARIANT, OFF, ON, Toggle
from flagsvc.engine.predicates import Never
from flagsvc.engine.strategies import CompiledStrategy, Everyone, NeverEnabled


def fold(toggle: Toggle) -> None:
    """Remove strategies that never decide, and make the toggle a constant if only one outcome remains."""
    reachable: list[CompiledStrategy] = []
    for strategy in toggle.strategies:
        if is_never_on(strategy):
            continue
        reachable.append(strategy)
        if is_always_on(strategy):
            break
    toggle.apply(reachable)
    if not reachable:
        toggle.constant = OFF
    elif is_always_on(reachable[0]):
        toggle.constant = constant_outcome(toggle, reachable[0])


def is_never_on(strategy: CompiledStrategy) -> bool:
    """Return whether a strategy is off for every context."""
    if isinstance(strategy, NeverEnabled):
        return True
    for condition in strategy.conditions:
        if isinstance(condition, Never):
            return True
    return False


def is_always_on(strategy: CompiledStrategy) -> bool:
    """Return whether a strategy is on for everyone."""
    return isinstance(strategy, Everyone) and strategy.condition is None


def constant_outcome(toggle: Toggle, strategy: CompiledStrategy) -> int:
    """Return the number of the outcome of a strategy that is always on; DYNAMIC if a variant is drawn."""
    if strategy.choice is not None:
        index = strategy.choice.constant_index()
        return DYNAMIC if index < 0 else int(strategy.first) + index
    if toggle.choice is not None:
        index = toggle.choice.constant_index()
        return DYNAMIC if index < 0 else FIRST_VARIANT + index
    return ON
