"""Compiles naming patterns and matches names."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Final

from flagsvc.server.store.patterns.budget import StepBudget, UncheckedNameError, too_many_steps
from flagsvc.server.store.patterns.escapes import InvalidPattern
from flagsvc.server.store.patterns.grammar import parse
from flagsvc.server.store.patterns.linear import LinearPattern, TooLargeForRe2, encode_text
from flagsvc.server.store.patterns.nodes import Node
from flagsvc.server.store.patterns.program import compile_program
from flagsvc.server.store.patterns.search import OutOfSteps, PatternSearch
from flagsvc.server.store.patterns.units import utf16_units

WORK_PER_STEP: Final = 128
"""RE2's worst-case work (`LinearPattern.cost`) that counts as one step: the steps of a name take 50 ms there, too."""

SEARCH_LOCK: Final = threading.Lock()
"""Held during a search by steps, so that only one runs: several would slow down the event loop."""


class Pattern:
    """A parsed pattern: its nodes, None for one that matches every name, or the reason why it cannot be checked."""

    def __init__(self, node: Node | None, problem: UncheckedNameError | None = None) -> None:
        self._node = node
        self._problem = problem
        self._linear = None if node is None else compile_linear(node)
        self._program = None if node is None else compile_program(node)

    def matches(self, name: str, budget: StepBudget) -> bool:
        """Return whether a name matches. Raises `UncheckedNameError` where that cannot be checked."""
        if self._problem is not None:
            raise UncheckedNameError(self._problem.reason, self._problem.remedy)
        found = self._match_linear(name, budget)
        return self._match_by_steps(name, budget) if found is None else found

    def _match_linear(self, name: str, budget: StepBudget) -> bool | None:
        """Return RE2's result; None where RE2 does not support the pattern, or the name would take too many steps."""
        if self._linear is None:
            return None
        text = encode_text(name)
        steps = 1 + self._linear.cost(text) // WORK_PER_STEP
        if steps > budget.allowance(len(name)):
            return None
        budget.take(steps)
        return self._linear.search(text)

    def _match_by_steps(self, name: str, budget: StepBudget) -> bool:
        """Return the result of a search by steps. Raises `UncheckedNameError`."""
        if self._program is None:
            return True
        allowance = budget.allowance(len(name))
        if len(name) > allowance:
            raise too_many_steps()
        search = PatternSearch(utf16_units(name), allowance)
        try:
            with SEARCH_LOCK:
                return search.run(self._program.instructions, self._program.registers, anchored=self._program.anchored)
        except OutOfSteps:
            raise too_many_steps() from None
        finally:
            budget.take(allowance - max(search.left, 0))


def compile_linear(node: Node) -> LinearPattern | None:
    """Return a pattern compiled by RE2; None where RE2 does not support it."""
    try:
        return LinearPattern(node)
    except TooLargeForRe2:
        return None


@lru_cache(maxsize=16)
def compile_pattern(pattern: str) -> Pattern:
    """Return the compiled `^` + pattern + `$`. A pattern that JavaScript rejects matches every name."""
    try:
        return Pattern(parse(pattern))
    except InvalidPattern:
        return Pattern(None)
    except UncheckedNameError as problem:
        return Pattern(None, problem)
