"""A backtracking search with a limited number of steps, and its instructions.

Each instruction is one step, and so is each unit of text that an instruction reads. Memory is bounded by the steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from flagsvc.server.store.patterns.characters import WORD, Ranges

NO_POSITION: Final = -1
"""The value of a group's registers before it matches."""


class OutOfSteps(Exception):  # noqa: N818  (a verdict)
    """The search needs more steps than it may take."""


class PatternSearch:
    """A search in one text. `left` is the number of remaining steps."""

    def __init__(self, text: tuple[int, ...], left: int) -> None:
        self.text = text
        self.left = left
        self.at = 0
        self.next = 0
        self.registers: list[int] = []
        self.alternatives: list[tuple[int, int, int, int]] = []
        """Untried alternatives: instruction, position in the text, length of `changes`, and how many more positions to try."""
        self.changes: list[tuple[int, int]] = []
        """Registers and their previous values, to restore them for an alternative."""

    def run(self, instructions: Sequence[Instruction], registers: int, *, anchored: bool) -> bool:
        """Return whether the text or a part of it matches. Raises `OutOfSteps`."""
        starts = 1 if anchored else len(self.text) + 1
        return any(self._run_from(start, instructions, registers) for start in range(starts))

    def _run_from(self, start: int, instructions: Sequence[Instruction], registers: int) -> bool:
        self.at, self.next = start, 0
        self.registers = [NO_POSITION] * registers
        self.changes.clear()
        self.left -= registers
        end = len(instructions)
        while self.next < end:
            self.left -= 1
            if self.left < 0:
                raise OutOfSteps
            instruction = instructions[self.next]
            self.next += 1
            if not instruction.run(self) and not self._backtrack():
                return False
        self.alternatives.clear()
        return True

    def set_register(self, register: int, value: int) -> None:
        """Set a register."""
        self.changes.append((register, self.registers[register]))
        self.registers[register] = value

    def push_alternative(self, instruction: int, at: int, more: int = 0) -> None:
        """Add an alternative: an instruction at a position, then at `more` positions after it (before it, if negative)."""
        self.alternatives.append((instruction, at, len(self.changes), more))

    def _backtrack(self) -> bool:
        """Continue with the last untried alternative; return whether there is one."""
        if not self.alternatives:
            return False
        self.next, self.at, changed, more = self.alternatives.pop()
        while len(self.changes) > changed:
            register, value = self.changes.pop()
            self.registers[register] = value
        if more:
            step = 1 if more > 0 else -1
            self.alternatives.append((self.next, self.at + step, changed, more - step))
        return True

    def is_word(self, at: int) -> bool:
        """Return whether the unit at a position exists and is a word character."""
        return 0 <= at < len(self.text) and contains(WORD_EDGES, self.text[at])


class Instruction(ABC):
    """One step of a program."""

    @abstractmethod
    def run(self, search: PatternSearch) -> bool:
        """Run the instruction; return whether it succeeded."""


def range_edges(ranges: Ranges) -> list[int]:
    """Return the first unit of each range, and the unit after each range, in order."""
    return [edge for low, high in ranges for edge in (low, high + 1)]


def contains(edges: list[int], unit: int) -> bool:
    """Return whether a unit is in a set, given by `range_edges`."""
    return bisect_right(edges, unit) % 2 == 1


WORD_EDGES: Final = range_edges(WORD)


class MatchUnit(Instruction):
    """Match one unit of a set."""

    def __init__(self, ranges: Ranges, behind: bool) -> None:
        self._edges = range_edges(ranges)
        self._behind = behind

    def run(self, search: PatternSearch) -> bool:
        """Fail at the end of the text, and at any other unit."""
        at = search.at - 1 if self._behind else search.at
        if not 0 <= at < len(search.text) or not contains(self._edges, search.text[at]):
            return False
        search.at = at if self._behind else at + 1
        return True


class MatchUnits(Instruction):
    """Match as many units of a set as possible, up to `most`; add alternatives with fewer, down to `least`."""

    def __init__(self, ranges: Ranges, behind: bool, least: int, most: int | None) -> None:
        self._edges = range_edges(ranges)
        self._behind = behind
        self._least = least
        self._most = most

    def run(self, search: PatternSearch) -> bool:
        """Fail if fewer than `least` match."""
        step = -1 if self._behind else 1
        at = search.at - 1 if self._behind else search.at
        taken = 0
        while taken != self._most and 0 <= at < len(search.text) and contains(self._edges, search.text[at]):
            at += step
            taken += 1
        search.left -= taken
        if taken < self._least:
            return False
        end = search.at + step * taken
        if taken > self._least:
            search.push_alternative(search.next, end - step, -step * (taken - self._least - 1))
        search.at = end
        return True


class TextStart(Instruction):
    """Match at the start of the text."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.at == 0


class TextEnd(Instruction):
    """Match at the end of the text."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.at == len(search.text)


class Boundary(Instruction):
    """Match where a word begins or ends."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.is_word(search.at - 1) != search.is_word(search.at)


class NotBoundary(Instruction):
    """Match where no word begins or ends."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.is_word(search.at - 1) == search.is_word(search.at)


ASSERTIONS: Final[dict[str, type[Instruction]]] = {"^": TextStart, "$": TextEnd, "b": Boundary, "B": NotBoundary}


class Fork(Instruction):
    """Continue, and add an alternative."""

    other = 0

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.push_alternative(self.other, search.at)
        return True


class Jump(Instruction):
    """Continue at another instruction."""

    target = 0

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.next = self.target
        return True


class SavePosition(Instruction):
    """Store the position in a register."""

    def __init__(self, register: int) -> None:
        self._register = register

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.set_register(self._register, search.at)
        return True


class SaveGroup(Instruction):
    """Store the match of a group in two registers from `span` on; the register `begin` contains its start."""

    def __init__(self, span: int, begin: int, behind: bool) -> None:
        self._begin = begin
        self._from, self._to = (span + 1, span) if behind else (span, span + 1)

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.set_register(self._from, search.registers[self._begin])
        search.set_register(self._to, search.at)
        return True


class BackReference(Instruction):
    """Match the text that a group matched; match nothing if it has no match yet."""

    def __init__(self, span: int, behind: bool) -> None:
        self._span = span
        self._behind = behind

    def run(self, search: PatternSearch) -> bool:
        """Fail at any other text."""
        low, high = search.registers[self._span], search.registers[self._span + 1]
        size = high - low
        search.left -= size
        start = search.at - size if self._behind else search.at
        if start < 0 or search.text[start : start + size] != search.text[low:high]:
            return False
        search.at = start if self._behind else start + size
        return True


class LookStart(Instruction):
    """Begin a look-around. Two registers: the position, and the number of alternatives before."""

    def __init__(self, registers: int, negated: bool) -> None:
        self.place = registers
        self.alternatives_before = registers + 1
        self.after = 0
        self._negated = negated

    def run(self, search: PatternSearch) -> bool:
        """Never fail. If negated, add the continuation after the look-around as an alternative."""
        search.set_register(self.place, search.at)
        search.set_register(self.alternatives_before, len(search.alternatives))
        if self._negated:
            search.push_alternative(self.after, search.at)
        return True


class LookMatched(Instruction):
    """End a look-around that matched: return to its position and drop its alternatives."""

    def __init__(self, look: LookStart) -> None:
        self._look = look

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.at = search.registers[self._look.place]
        del search.alternatives[search.registers[self._look.alternatives_before] :]
        return True


class LookDenied(Instruction):
    """End a negated look-around that matched: drop its alternatives and the continuation."""

    def __init__(self, look: LookStart) -> None:
        self._look = look

    def run(self, search: PatternSearch) -> bool:
        """Always fail."""
        del search.alternatives[search.registers[self._look.alternatives_before] :]
        return False


class Loop(Instruction):
    """Repeat the instructions up to `after`. Two registers: completed rounds, and the start of this one.

    `groups` are the registers of the groups in the loop.
    """

    def __init__(self, registers: int, least: int, most: int | None, greedy: bool, groups: list[int]) -> None:
        self.rounds = registers
        self.round_start = registers + 1
        self.least = least
        self.groups = groups
        self.first = 0
        self.after = 0
        self._most = most
        self._greedy = greedy

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        rounds = search.registers[self.rounds]
        if rounds < self.least:
            return True
        if self._most is not None and rounds >= self._most:
            search.next = self.after
        elif self._greedy:
            search.push_alternative(self.after, search.at)
        else:
            search.push_alternative(search.next, search.at)
            search.next = self.after
        return True


class LoopStart(Instruction):
    """Enter a loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.set_register(self._loop.rounds, 0)
        return True


class RoundStart(Instruction):
    """Begin a round of a loop: reset its groups."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.set_register(self._loop.round_start, search.at)
        search.left -= len(self._loop.groups)
        for register in self._loop.groups:
            search.set_register(register, NO_POSITION)
        return True


class RoundEnd(Instruction):
    """End a round of a loop, and try another. An optional round must match some text."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def run(self, search: PatternSearch) -> bool:
        """Fail after an empty optional round."""
        loop = self._loop
        rounds = search.registers[loop.rounds]
        if rounds >= loop.least and search.at == search.registers[loop.round_start]:
            return False
        search.set_register(loop.rounds, rounds + 1)
        search.next = loop.first
        return True
