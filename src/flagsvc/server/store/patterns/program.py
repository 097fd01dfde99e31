"""Translates nodes into instructions for a backtracking search.

A search has a position in the text, registers, and untried alternatives. An instruction moves the position or fails; then the
search tries the next alternative with restored registers. Counts are not expanded: the program is as long as the pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flagsvc.server.store.patterns import search as op
from flagsvc.server.store.patterns.nodes import (
    Alternation,
    Assertion,
    Group,
    LookAround,
    Node,
    Reference,
    Repeat,
    Sequence,
    UnitSet,
)


@dataclass
class PatternProgram:
    """Instructions, the number of their registers, and whether they can match only at the start of a text."""

    instructions: list[op.Instruction] = field(default_factory=list)
    registers: int = 0
    anchored: bool = False


def compile_program(node: Node) -> PatternProgram:
    """Return the program of a pattern."""
    writer = ProgramWriter(referenced_groups(node))
    writer.write(node, behind=False)
    writer.program.anchored = is_anchored(node)
    return writer.program


def is_anchored(node: Node) -> bool:
    """Return whether every alternative of a pattern begins with `^`."""
    if isinstance(node, Alternation):
        return all(is_anchored(each) for each in node.nodes)
    first = node.nodes[0] if isinstance(node, Sequence) and node.nodes else node
    return isinstance(first, Assertion) and first.kind == "^"


def referenced_groups(node: Node) -> set[int]:
    """Return the numbers of the groups that a pattern refers to; the search stores only their matches."""
    if isinstance(node, Reference):
        return {node.number}
    if isinstance(node, Sequence | Alternation):
        return {number for each in node.nodes for number in referenced_groups(each)}
    return referenced_groups(node.node) if isinstance(node, Group | LookAround | Repeat) else set()


class ProgramWriter:
    """Writes the program of one pattern."""

    def __init__(self, referenced: set[int]) -> None:
        self.program = PatternProgram(registers=2 * len(referenced))
        self._spans = {number: 2 * place for place, number in enumerate(sorted(referenced))}
        self._writers: dict[type, Callable[..., None]] = {
            UnitSet: self._one,
            Assertion: self._edge,
            Sequence: self._sequence,
            Alternation: self._choice,
            Group: self._group,
            LookAround: self._look,
            Reference: self._reference,
            Repeat: self._repeat,
        }

    def write(self, node: Node, *, behind: bool) -> None:
        """Write a node; with `behind`, it matches from its end to its beginning."""
        self._writers[type(node)](node, behind)

    def _add(self, instruction: op.Instruction) -> None:
        self.program.instructions.append(instruction)

    def _here(self) -> int:
        """Return the index of the next instruction."""
        return len(self.program.instructions)

    def _register(self, count: int) -> int:
        """Reserve registers and return the first one."""
        self.program.registers += count
        return self.program.registers - count

    def _one(self, node: UnitSet, behind: bool) -> None:
        self._add(op.MatchUnit(node.ranges, behind))

    def _edge(self, node: Assertion, behind: bool) -> None:
        self._add(op.ASSERTIONS[node.kind]())

    def _sequence(self, node: Sequence, behind: bool) -> None:
        for each in reversed(node.nodes) if behind else node.nodes:
            self.write(each, behind=behind)

    def _choice(self, node: Alternation, behind: bool) -> None:
        ends: list[op.Jump] = []
        for each in node.nodes[:-1]:
            fork = op.Fork()
            self._add(fork)
            self.write(each, behind=behind)
            ends.append(op.Jump())
            self._add(ends[-1])
            fork.other = self._here()
        self.write(node.nodes[-1], behind=behind)
        for end in ends:
            end.target = self._here()

    def _group(self, node: Group, behind: bool) -> None:
        span = None if node.number is None else self._spans.get(node.number)
        if span is None:
            self.write(node.node, behind=behind)
            return
        begin = self._register(1)  # a group has its match only when it is closed
        self._add(op.SavePosition(begin))
        self.write(node.node, behind=behind)
        self._add(op.SaveGroup(span, begin, behind))

    def _look(self, node: LookAround, behind: bool) -> None:
        look = op.LookStart(self._register(2), node.negated)
        self._add(look)
        self.write(node.node, behind=node.behind)
        self._add(op.LookDenied(look) if node.negated else op.LookMatched(look))
        look.after = self._here()

    def _reference(self, node: Reference, behind: bool) -> None:
        self._add(op.BackReference(self._spans[node.number], behind))

    def _repeat(self, node: Repeat, behind: bool) -> None:
        if node.most == 0:
            return
        if isinstance(node.node, UnitSet) and node.greedy:
            self._add(op.MatchUnits(node.node.ranges, behind, node.least, node.most))
            return
        spans = [self._spans[each] for each in self._spans if node.groups[0] <= each < node.groups[1]]
        loop = op.Loop(
            self._register(2), node.least, node.most, node.greedy, [at + part for at in spans for part in (0, 1)]
        )
        self._add(op.LoopStart(loop))
        loop.first = self._here()
        self._add(loop)
        self._add(op.RoundStart(loop))
        self.write(node.node, behind=behind)
        self._add(op.RoundEnd(loop))
        loop.after = self._here()
