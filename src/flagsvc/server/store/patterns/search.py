"""A search that goes back and tries again, with a bound on its steps, and its instructions.

Every instruction is one step, and so is each unit of a text that one goes over; the search remembers no more than its steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from flagsvc.server.store.patterns.units import WORD, Ranges

NOWHERE: Final = -1
"""What the registers of a group hold that found nothing."""


class OutOfSteps(Exception):  # noqa: N818  (a verdict)
    """The steps did not suffice."""


class PatternSearch:
    """One text that is searched. `left` are the steps that are left."""

    def __init__(self, text: tuple[int, ...], left: int) -> None:
        self.text = text
        self.left = left
        self.at = 0
        self.next = 0
        self.registers: list[int] = []
        self.ways: list[tuple[int, int, int, int]] = []
        """Ways not tried: instruction, place in the text, length of `changes` then, and how many more places follow."""
        self.changes: list[tuple[int, int]] = []
        """Registers and what they held, so that a way finds them as they were."""

    def run(self, instructions: Sequence[Instruction], registers: int, *, anchored: bool) -> bool:
        """Return whether the text, or a part of it, is found. Raises `OutOfSteps`."""
        starts = 1 if anchored else len(self.text) + 1
        return any(self._run_from(start, instructions, registers) for start in range(starts))

    def _run_from(self, start: int, instructions: Sequence[Instruction], registers: int) -> bool:
        self.at, self.next = start, 0
        self.registers = [NOWHERE] * registers
        self.changes.clear()
        self.left -= registers
        end = len(instructions)
        while self.next < end:
            self.left -= 1
            if self.left < 0:
                raise OutOfSteps
            instruction = instructions[self.next]
            self.next += 1
            if not instruction.run(self) and not self._go_back():
                return False
        self.ways.clear()
        return True

    def put(self, register: int, value: int) -> None:
        """Set a register."""
        self.changes.append((register, self.registers[register]))
        self.registers[register] = value

    def keep(self, instruction: int, at: int, more: int = 0) -> None:
        """Keep a way to be tried later: an instruction at a place, and then at `more` places behind it (before it, if negative)."""
        self.ways.append((instruction, at, len(self.changes), more))

    def _go_back(self) -> bool:
        """Take the last way that was not tried; return whether there is one."""
        if not self.ways:
            return False
        self.next, self.at, changed, more = self.ways.pop()
        while len(self.changes) > changed:
            register, value = self.changes.pop()
            self.registers[register] = value
        if more:
            step = 1 if more > 0 else -1
            self.ways.append((self.next, self.at + step, changed, more - step))
        return True

    def is_word(self, at: int) -> bool:
        """Return whether a unit is there, and part of a word."""
        return 0 <= at < len(self.text) and contains(WORD_EDGES, self.text[at])


class Instruction(ABC):
    """One step of a program."""

    @abstractmethod
    def run(self, search: PatternSearch) -> bool:
        """Do it; return whether it did not fail."""


def edges(ranges: Ranges) -> list[int]:
    """Return where a set begins, ends, begins again…"""
    return [edge for low, high in ranges for edge in (low, high + 1)]


def contains(edges: list[int], unit: int) -> bool:
    """Return whether a unit is in a set."""
    return bisect_right(edges, unit) % 2 == 1


WORD_EDGES: Final = edges(WORD)


class Take(Instruction):
    """Go over one unit out of a set."""

    def __init__(self, ranges: Ranges, behind: bool) -> None:
        self._edges = edges(ranges)
        self._behind = behind

    def run(self, search: PatternSearch) -> bool:
        """Fail at the end of the text, and at another unit."""
        at = search.at - 1 if self._behind else search.at
        if not 0 <= at < len(search.text) or not contains(self._edges, search.text[at]):
            return False
        search.at = at if self._behind else at + 1
        return True


class TakeMany(Instruction):
    """Go over as many units out of a set as there are, up to `most`; a way is kept for each fewer, down to `least`."""

    def __init__(self, ranges: Ranges, behind: bool, least: int, most: int | None) -> None:
        self._edges = edges(ranges)
        self._behind = behind
        self._least = least
        self._most = most

    def run(self, search: PatternSearch) -> bool:
        """Fail where there are fewer than `least`."""
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
            search.keep(search.next, end - step, -step * (taken - self._least - 1))
        search.at = end
        return True


class Start(Instruction):
    """Be at the start of the text."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.at == 0


class Finish(Instruction):
    """Be at the very end of the text."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.at == len(search.text)


class Boundary(Instruction):
    """Be where a word begins or ends."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.is_word(search.at - 1) != search.is_word(search.at)


class Inside(Instruction):
    """Be where no word begins or ends."""

    def run(self, search: PatternSearch) -> bool:
        """Fail elsewhere."""
        return search.is_word(search.at - 1) == search.is_word(search.at)


EDGES: Final[dict[str, type[Instruction]]] = {"^": Start, "$": Finish, "b": Boundary, "B": Inside}


class Fork(Instruction):
    """Go on; keep another way."""

    other = 0

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.keep(self.other, search.at)
        return True


class Jump(Instruction):
    """Go on elsewhere."""

    target = 0

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.next = self.target
        return True


class Mark(Instruction):
    """Remember the place."""

    def __init__(self, register: int) -> None:
        self._register = register

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.put(self._register, search.at)
        return True


class Close(Instruction):
    """Note what a group found: two registers from `span` on, begun at the place in `begin`."""

    def __init__(self, span: int, begin: int, behind: bool) -> None:
        self._begin = begin
        self._from, self._to = (span + 1, span) if behind else (span, span + 1)

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.put(self._from, search.registers[self._begin])
        search.put(self._to, search.at)
        return True


class BackReference(Instruction):
    """Go over what a group found; nothing, where it found nothing yet."""

    def __init__(self, span: int, behind: bool) -> None:
        self._span = span
        self._behind = behind

    def run(self, search: PatternSearch) -> bool:
        """Fail where something else stands."""
        low, high = search.registers[self._span], search.registers[self._span + 1]
        size = high - low
        search.left -= size
        begun = search.at - size if self._behind else search.at
        if begun < 0 or search.text[begun : begun + size] != search.text[low:high]:
            return False
        search.at = begun if self._behind else begun + size
        return True


class LookStart(Instruction):
    """Begin to look ahead or behind. Two registers: the place, and how many ways were kept before."""

    def __init__(self, registers: int, negated: bool) -> None:
        self.place = registers
        self.kept = registers + 1
        self.after = 0
        self._negated = negated

    def run(self, search: PatternSearch) -> bool:
        """Never fail. What must not be there, and is not, goes on behind."""
        search.put(self.place, search.at)
        search.put(self.kept, len(search.ways))
        if self._negated:
            search.keep(self.after, search.at)
        return True


class Looked(Instruction):
    """What must be there is: go back to the place. Other ways of seeing it are forgotten."""

    def __init__(self, look: LookStart) -> None:
        self._look = look

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.at = search.registers[self._look.place]
        del search.ways[search.registers[self._look.kept] :]
        return True


class Denied(Instruction):
    """What must not be there is."""

    def __init__(self, look: LookStart) -> None:
        self._look = look

    def run(self, search: PatternSearch) -> bool:
        """Fail always, back to before the look."""
        del search.ways[search.registers[self._look.kept] :]
        return False


class Loop(Instruction):
    """Repeat the instructions up to `after`. Two registers: rounds done, and where this one began; `groups`: others'."""

    def __init__(self, registers: int, least: int, most: int | None, greedy: bool, groups: list[int]) -> None:
        self.rounds = registers
        self.begun = registers + 1
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
            search.keep(self.after, search.at)
        else:
            search.keep(search.next, search.at)
            search.next = self.after
        return True


class Begin(Instruction):
    """Come to a loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.put(self._loop.rounds, 0)
        return True


class Round(Instruction):
    """Begin a round of a loop: its groups have found nothing yet."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def run(self, search: PatternSearch) -> bool:
        """Never fail."""
        search.put(self._loop.begun, search.at)
        search.left -= len(self._loop.groups)
        for register in self._loop.groups:
            search.put(register, NOWHERE)
        return True


class RoundEnd(Instruction):
    """End a round of a loop, and try another. A round that was not needed must have found something."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def run(self, search: PatternSearch) -> bool:
        """Fail after such a round that is empty."""
        loop = self._loop
        rounds = search.registers[loop.rounds]
        if rounds >= loop.least and search.at == search.registers[loop.begun]:
            return False
        search.put(loop.rounds, rounds + 1)
        search.next = loop.first
        return True
