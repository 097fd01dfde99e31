r"""Compiles naming patterns and matches names. RE2, which searches in time linear in the text, runs what it supports.

RE2 accepts no halves of surrogate pairs, so other characters replace them in pattern and text. `\B` is not supported, because RE2
also finds it within a character.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Final

import re2

from flagsvc.server.store.patterns.budget import StepBudget, UncheckedNameError, too_many_steps
from flagsvc.server.store.patterns.characters import InvalidPattern, Ranges, utf16_units
from flagsvc.server.store.patterns.grammar import parse
from flagsvc.server.store.patterns.nodes import Alternation, Assertion, Group, Node, Repeat, Sequence, UnitSet
from flagsvc.server.store.patterns.program import compile_program
from flagsvc.server.store.patterns.search import OutOfSteps, PatternSearch

WORK_PER_STEP: Final = 128
"""RE2's worst-case work (`LinearPattern.cost`) that counts as one step: the steps of a name take 50 ms there, too."""

SEARCH_LOCK: Final = threading.Lock()
"""Held during a search by steps, so that only one runs: several would slow down the event loop."""


class Pattern:
    """A parsed pattern: its nodes, None for one that matches every name, or the reason why it cannot be checked."""

    def __init__(self, node: Node | None, problem: UncheckedNameError | None = None) -> None:
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


SURROGATES: Final = (0xD800, 0xDFFF)
STAND_IN_OFFSET: Final = 0xF0000 - 0xD800
"""The offset from a surrogate to its replacement."""
ASSERTIONS: Final = {"^": r"\A", "$": r"\z", "b": r"\b"}
NEVER_MATCHES: Final = r"[^\x{0}-\x{10ffff}]"
MAX_MEMORY: Final = 2 * 1024 * 1024
"""Bytes of a compiled pattern and of its cache while it searches."""
MAX_SIZE: Final = 10_000
"""The most ranges of units in a pattern, multiplied by their repetitions: RE2 expands them, here within 30 ms."""
OPTIONAL_REPEAT_WEIGHT: Final = 3
"""The weight of an optional repetition: RE2 merges adjacent ones in a time quadratic in their number."""
MAX_REPEATS: Final = 1_000
"""The largest count that RE2 accepts."""


class TooLargeForRe2(Exception):  # noqa: N818  (a verdict on the pattern)
    """RE2 does not support a part of the pattern, or would take long to compile it."""


class LinearPattern:
    """A pattern compiled by RE2. Raises `TooLargeForRe2`."""

    def __init__(self, node: Node) -> None:
        count_ranges(node)
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = MAX_MEMORY
        try:
            self._compiled = re2.compile(to_re2(node).encode(), options)
        except re2.error:
            raise TooLargeForRe2 from None
        self._size: int = self._compiled.programsize

    def cost(self, text: bytes) -> int:
        """Return the worst-case work of a search: instructions of the pattern times bytes of the text."""
        return self._size * (len(text) + 1)

    def search(self, text: bytes) -> bool:
        """Return whether the pattern matches in a text encoded by `encode_text`."""
        return self._compiled.search(text) is not None


def encode_text(text: str) -> bytes:
    """Return a text in the form for `LinearPattern`."""
    if text.isascii():
        return text.encode()
    return "".join(chr(replace_surrogate(each)) for each in utf16_units(text)).encode()


def replace_surrogate(unit: int) -> int:
    """Return a unit, or the replacement of a surrogate."""
    return unit + STAND_IN_OFFSET if SURROGATES[0] <= unit <= SURROGATES[1] else unit


def count_ranges(node: Node) -> int:
    """Return the number of ranges after RE2's expansion. Raises `TooLargeForRe2`, also for unsupported nodes."""
    if isinstance(node, UnitSet):
        found = max(1, len(node.ranges))
    elif isinstance(node, Assertion) and node.kind in ASSERTIONS:
        found = 1
    elif isinstance(node, Group):
        found = 1 + count_ranges(node.node)
    elif isinstance(node, Sequence | Alternation):
        found = sum(count_ranges(each) for each in node.nodes)
    elif isinstance(node, Repeat) and max(node.least, node.most or 0) <= MAX_REPEATS:
        choices = (node.most or node.least) - node.least
        found = count_ranges(node.node) * max(1, node.least + OPTIONAL_REPEAT_WEIGHT * choices)
    else:
        raise TooLargeForRe2
    if found > MAX_SIZE:
        raise TooLargeForRe2
    return found


def to_re2(node: Node) -> str:
    """Return a node in RE2's syntax."""
    if isinstance(node, UnitSet):
        return ranges_to_re2(node.ranges)
    if isinstance(node, Assertion):
        return ASSERTIONS[node.kind]
    if isinstance(node, Group):
        return f"(?:{to_re2(node.node)})"
    if isinstance(node, Sequence):
        return "".join(to_re2(each) for each in node.nodes)
    if isinstance(node, Alternation):
        return "|".join(to_re2(each) for each in node.nodes)
    assert isinstance(node, Repeat)
    most = "" if node.most is None else str(node.most)
    return f"{to_re2(node.node)}{{{node.least},{most}}}" + ("" if node.greedy else "?")


def ranges_to_re2(ranges: Ranges) -> str:
    """Return a set of units as a class, with replaced surrogates."""
    first, last = SURROGATES
    parts = [part for low, high in ranges for part in ((low, min(high, first - 1)), (max(low, last + 1), high))]
    halves = [(max(low, first), min(high, last)) for low, high in ranges]
    parts += [(replace_surrogate(low), replace_surrogate(high)) for low, high in halves if low <= high]
    inner = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in parts if low <= high)
    return f"[{inner}]" if inner else NEVER_MATCHES
