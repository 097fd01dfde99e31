"""A naming pattern, compiled, and whether names match it."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Final

from flagsvc.server.store.patterns.budget import StepBudget, Unchecked, too_many_steps
from flagsvc.server.store.patterns.escapes import Invalid
from flagsvc.server.store.patterns.grammar import parse
from flagsvc.server.store.patterns.linear import Linear, TooLargeForRe2, encoded
from flagsvc.server.store.patterns.nodes import Node
from flagsvc.server.store.patterns.program import compile_program
from flagsvc.server.store.patterns.search import OutOfSteps, PatternSearch
from flagsvc.server.store.patterns.units import units

WORK_OF_A_STEP: Final = 128
"""What RE2 does at worst (`Linear.cost`) for one step: the steps of a name are 50 ms there, too."""

TURN: Final = threading.Lock()
"""Held by the one search by steps that runs: several would leave the event loop a small part of the interpreter's time."""


class Pattern:
    """A pattern that was read: its nodes, None for one that takes every name, or why it was not read."""

    def __init__(self, node: Node | None, problem: Unchecked | None = None) -> None:
        self._node = node
        self._problem = problem
        self._linear = None if node is None else linear(node)
        self._program = None if node is None else compile_program(node)

    def matches(self, name: str, budget: StepBudget) -> bool:
        """Return whether a name matches. Raises `Unchecked` where that is not known."""
        if self._problem is not None:
            raise Unchecked(self._problem.reason, self._problem.remedy)
        found = self._linearly(name, budget)
        return self._by_steps(name, budget) if found is None else found

    def _linearly(self, name: str, budget: StepBudget) -> bool | None:
        """Return what RE2 says; None where it cannot take the pattern, or the name would be too much work."""
        if self._linear is None:
            return None
        text = encoded(name)
        steps = 1 + self._linear.cost(text) // WORK_OF_A_STEP
        if steps > budget.allowance(len(name)):
            return None
        budget.take(steps)
        return self._linear.search(text)

    def _by_steps(self, name: str, budget: StepBudget) -> bool:
        """Return what a search by steps says. Raises `Unchecked`."""
        if self._program is None:
            return True
        allowance = budget.allowance(len(name))
        if len(name) > allowance:
            raise too_many_steps()
        search = PatternSearch(units(name), allowance)
        try:
            with TURN:
                return search.run(self._program.instructions, self._program.registers, anchored=self._program.anchored)
        except OutOfSteps:
            raise too_many_steps() from None
        finally:
            budget.take(allowance - max(search.left, 0))


def linear(node: Node) -> Linear | None:
    """Return a pattern for RE2; None where that cannot take it."""
    try:
        return Linear(node)
    except TooLargeForRe2:
        return None


@lru_cache(maxsize=16)
def compile_pattern(pattern: str) -> Pattern:
    """Return what `^` + pattern + `$` says of names. One that is no pattern to JavaScript takes them all."""
    try:
        return Pattern(parse(pattern))
    except Invalid:
        return Pattern(None)
    except Unchecked as problem:
        return Pattern(None, problem)
