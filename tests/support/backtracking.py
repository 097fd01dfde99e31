"""Proves that Python's `re` runs a pattern in linear time: a search reaches a position in at most a fixed number of ways.

The parse tree becomes an automaton. A path through it is a way to read a text, so the number of paths bounds the steps of a search.
The number has a bound unless one text leads around a loop in two ways, as in `(a|a)*` (exponential), or around a loop, from it to
another loop and around that, as in `a*a*` (polynomial): Weber and Seidl, "On the degree of ambiguity of finite automata".
A call that tries every position has a first loop that reads anything. A search that cannot fail any more does not go back.

The proof errs on the safe side: counts over `UNROLLED` have no end, and atomic groups and look-arounds end no path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

UNROLLED = 8
"""Repetitions up to this count are written out."""
ANCHORED = frozenset({"match", "fullmatch"})
"""The calls that try one position. All others try every position."""
SAMPLES = {chr(code) for code in range(0x180)} | set("\u0660\u1680\u2028\u212a\u3000\u4e2d\ud800\uffff")
REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
SINGLE = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}


class Node:
    """A node of the automaton: reads one of `mask`; with `silent`, reads nothing, where the next character is one of `mask`."""

    def __init__(self, mask: int, after: Iterable[Node] = (), *, silent: bool = False, sure: bool = True) -> None:
        self.mask, self.after, self.silent, self.sure = mask, list(after), silent, sure


class Step(NamedTuple):
    """A transition: its characters, the node that reads them, and whether the search certainly can go this way."""

    mask: int
    node: Node
    sure: bool


class Automaton:
    """The automaton of a pattern. Raises ValueError for one with a reference to a group."""

    def __init__(self, pattern: str | bytes, flags: int, call: str) -> None:
        self._tree = _parser.parse(pattern, flags)
        text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        near = {
            chr(code) for each in text for code in (ord(each) - 1, ord(each), ord(each) + 1) if 0 <= code < 0x110000
        }
        self._samples = sorted(SAMPLES | near)
        self._end = 1 << len(self._samples)
        self._all = self._end * 2 - 1
        self._accept = Node(0)
        self.start = Node(self._all ^ self._end)
        first = self._sequence(self._tree, self._accept, self._tree.state.flags)
        bound = call in ANCHORED or (len(self._tree) > 0 and self._is_beginning(self._tree[0]))
        self.start.after = [first] if bound else [self.start, first]
        self._ends = self._end if call == "fullmatch" else self._all
        self.steps: dict[Node, list[Step]] = {}
        self._accepts: dict[Node, int] = {}
        self._explore()
        self.sure = self._find_sure()
        """The nodes that a search never leaves without a match."""

    def _is_beginning(self, item: Any) -> bool:
        return item[0] is _constants.AT and (
            item[1] is _constants.AT_BEGINNING_STRING
            or (item[1] is _constants.AT_BEGINNING and not self._tree.state.flags & re.MULTILINE)
        )

    def _explore(self) -> None:
        waiting = [self.start]
        while waiting:
            node = waiting.pop()
            if node not in self.steps:
                self.steps[node], self._accepts[node] = [], 0
                for each in node.after:
                    self._follow(node, each, self._all, True, [])
                waiting += [step.node for step in self.steps[node]]

    def _follow(self, origin: Node, node: Node, mask: int, sure: bool, path: list[Node]) -> None:
        """Collect the transitions of a node, by every silent path. A path may pass a node twice: a loop within a loop."""
        if node is self._accept:
            self._accepts[origin] |= mask & self._ends if sure else 0
        elif not node.silent:
            if mask & node.mask:
                self.steps[origin].append(Step(mask & node.mask, node, sure))
        elif path.count(node) < 2 and mask & node.mask:
            for each in node.after:
                self._follow(origin, each, mask & node.mask, sure and node.sure, [*path, node])

    def _find_sure(self) -> set[Node]:
        """Return the nodes from where every character, and the end of the text, leads to such a node or to a match."""
        found, before = set(self.steps), -1
        while len(found) != before:
            before = len(found)
            found = {node for node in found if self._reads_all(node, found)}
        return found

    def _reads_all(self, node: Node, within: set[Node]) -> bool:
        known = self._accepts[node]
        for step in self.steps[node]:
            known |= step.mask if step.sure and step.node in within else 0
        return known == self._all

    def _sequence(self, items: Iterable[Any], after: Node, flags: int) -> Node:
        for operation, value in reversed(list(items)):
            after = self._item(operation, value, after, flags)
        return after

    def _item(self, operation: Any, value: Any, after: Node, flags: int) -> Node:
        if operation in SINGLE:
            return Node(self._mask((operation, value), flags), [after])
        if operation in REPEATS:
            return self._repeat(value, after, flags, possessive=operation is _constants.POSSESSIVE_REPEAT)
        if operation is _constants.SUBPATTERN:
            return self._sequence(value[3], after, (flags | value[1]) & ~value[2])
        if operation is _constants.BRANCH:
            return Node(self._all, [self._sequence(each, after, flags) for each in value[1]], silent=True)
        if operation is _constants.ATOMIC_GROUP:
            (kind, inner), *rest = value
            if kind is _constants.MAX_REPEAT and not rest:
                return self._repeat(inner, after, flags, possessive=True)
            return self._sequence(value, Node(self._all, [after], silent=True, sure=False), flags)
        if operation is _constants.AT:
            return self._at(value, after)
        if operation in (_constants.ASSERT, _constants.ASSERT_NOT):
            return self._look(value, after, flags, wanted=operation is _constants.ASSERT)
        raise ValueError(f"there is no proof for {operation}")

    def _at(self, place: Any, after: Node) -> Node:
        if place not in (_constants.AT_END_STRING, _constants.AT_END):
            return Node(self._all, [after], silent=True, sure=False)
        line = 1 << self._samples.index("\n") if place is _constants.AT_END else 0
        ways = [Node(self._end, [after], silent=True), Node(line, [after], silent=True, sure=False)]
        return Node(self._all, ways, silent=True)

    def _look(self, value: Any, after: Node, flags: int, *, wanted: bool) -> Node:
        """Return the node of a look-around. A look-behind has a fixed width; a look-ahead is a side path without an end."""
        direction, inner = value
        if direction < 0:
            return Node(self._all, [after], silent=True, sure=False)
        if len(inner) == 1 and inner[0][0] in SINGLE:
            mask = self._mask(inner[0], flags)
            return Node(mask if wanted else self._all ^ mask, [after], silent=True)
        return Node(self._all, [self._sequence(inner, Node(0), flags), after], silent=True, sure=False)

    def _repeat(self, value: Any, after: Node, flags: int, *, possessive: bool) -> Node:
        least, most, inner = value
        unsure = Node(self._all, [after], silent=True, sure=False)
        single = len(inner) == 1 and inner[0][0] in SINGLE
        if possessive and not single:
            after = unsure
        end = after
        if possessive and single:  # leaves only where nothing more follows
            end = Node(self._all ^ self._mask(inner[0], flags), [after], silent=True)
        if most <= max(UNROLLED, least):
            node = after
            for _ in range(most - least):
                node = Node(self._all, [self._sequence(inner, node, flags), end], silent=True)
        else:
            endless = most is _constants.MAXREPEAT
            node = Node(self._all, silent=True)
            again = Node(self._all, [self._sequence(inner, node, flags)], silent=True, sure=endless)
            node.after = [again, end if endless else unsure]
        for _ in range(least):
            node = self._sequence(inner, node, flags)
        return node

    def _mask(self, item: Any, flags: int) -> int:
        """Return which of the samples a single item reads."""
        one = _parser.SubPattern(_parser.State(), [item])
        compiled = _compiler.compile(one, flags & ~re.DEBUG)
        return sum(1 << place for place, each in enumerate(self._samples) if compiled.fullmatch(each))


Nodes = tuple[Node, ...]


def reach(automaton: Automaton, begin: Nodes, within: tuple[set[Node], ...]) -> set[Nodes]:
    """Return the tuples of nodes that some text leads to, from a tuple of nodes; the text is not empty."""
    found: set[Nodes] = set()
    waiting = [begin]
    while waiting:
        for after in together(automaton, waiting.pop(), within):
            if after not in found:
                found.add(after)
                waiting.append(after)
    return found


def together(automaton: Automaton, nodes: Nodes, within: tuple[set[Node], ...]) -> Iterator[Nodes]:
    """Return where one character leads each of the nodes."""
    ways: list[tuple[int, Nodes]] = [(-1, ())]
    for node, allowed in zip(nodes, within, strict=True):
        steps = [step for step in automaton.steps[node] if step.node in allowed]
        ways = [(mask & step.mask, (*done, step.node)) for mask, done in ways for step in steps if mask & step.mask]
    return (nodes for _, nodes in ways)


def ambiguity(pattern: str | bytes, flags: int, call: str) -> str:
    """Return why a call of `re` with the pattern may take more than linear time; empty if it takes linear time."""
    automaton = Automaton(pattern, flags, call)
    ahead = {node: {each for (each,) in reach(automaton, (node,), ({*automaton.steps},))} for node in automaton.steps}
    circle = {node: {each for each in ahead[node] if node in ahead[each]} for node in automaton.steps}
    loops = [node for node in automaton.steps if circle[node]]
    for node in loops:
        if node in automaton.sure:
            continue
        inside = circle[node] - automaton.sure
        if any(
            left is not right and (node, node) in reach(automaton, (left, right), (inside, inside))
            for left, right in reach(automaton, (node, node), (inside, inside))
        ) or any(is_double(automaton.steps[each], inside) for each in inside):
            return "exponential: a loop reads a text in two ways"
    for first in loops:
        for second in loops:
            if first is second or second not in ahead[first] or second in automaton.sure:
                continue
            between = {each for each in ahead[first] if each is second or second in ahead[each]}
            within = (circle[first], between, circle[second] - automaton.sure)
            if (first, second, second) in reach(automaton, (first, first, second), within):
                return "polynomial: two loops share a text" + (
                    "" if first is not automaton.start else " (every position is tried)"
                )
    return ""


def is_double(steps: list[Step], inside: set[Node]) -> bool:
    """Return whether two silent paths lead to the same node by the same character."""
    kept = [step for step in steps if step.node in inside]
    return any(a.node is b.node and a.mask & b.mask for place, a in enumerate(kept) for b in kept[:place])
