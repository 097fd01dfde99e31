"""Every regular expression of the source takes time linear in the text, so that no text of a caller can stop a server."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import pytest

from flagsvc.cli.batch.yaml_files import YamlReader
from flagsvc.cli.parser import MESSAGES
from flagsvc.proxy.api.answers import compile_origin
from flagsvc.proxy.upstream import FORMS
from flagsvc.server.pages import problems
from support.statements import imports, nodes_of

CALLS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
PLACE_OF_FLAGS = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
WORST = "finditer"


class Use(NamedTuple):
    """A call of a pattern. `name` is its file with its name or expression there; `pattern` is None if only run time tells it."""

    name: str
    pattern: str | bytes | None
    flags: int
    call: str


class Source:
    """A module: the names that it takes from other modules, and the calls on each name."""

    def __init__(self, path: Path, package: Path) -> None:
        self.place = path.relative_to(package).as_posix()
        self.module = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        froms = [each for each in nodes_of(path) if isinstance(each, ast.ImportFrom)]
        self.taken = {f"{each.module}.{alias.name}" for each in froms for alias in each.names}
        self._path = path

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of the module, for the few modules with patterns and those that take patterns from them."""
        return list(ast.walk(ast.parse(self._path.read_text())))

    @cached_property
    def calls(self) -> dict[str, set[str]]:
        """The calls on each name, and the worst call for another use of it."""
        calls: dict[str, set[str]] = defaultdict(set)
        known = set()
        for each in self.nodes:
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CALLS:
                again = (
                    each.func.attr in {"match", "fullmatch"} and len(each.args) > 1
                )  # at a position, so perhaps at every position
                calls[last_name(each.func.value)].add(WORST if again else each.func.attr)
                known.add(each.func.value)
        for each in self.nodes:
            if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Load) and each not in known:
                calls[last_name(each)].add(WORST)
        return calls

    def uses(self, sources: list[Source]) -> Iterator[Use]:
        """Yield the uses of this module's patterns, in all modules."""
        if "re" not in imports(self._path):
            return
        targets = {each.value: target_of(each) for each in self.nodes if isinstance(each, ast.Assign | ast.AnnAssign)}
        for node in self.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and last_name(node.func.value) == "re"):
                continue
            kind = node.func.attr
            if kind in CALLS or kind == "compile":
                pattern, flags = self._pattern(node, kind)
                target = targets.get(node, "")
                ways = {kind} if kind in CALLS else self._ways(target, sources)
                yield from (Use(f"{self.place} {target or ast.unparse(node.args[0])}", pattern, flags, way) for way in sorted(ways))

    def _pattern(self, node: ast.Call, kind: str) -> tuple[str | bytes | None, int]:
        flags = [each.value for each in node.keywords if each.arg == "flags"] + node.args[PLACE_OF_FLAGS.get(kind, 2) :]
        names = vars(importlib.import_module(self.module))
        try:
            pattern, *given = (eval(ast.unparse(each), names) for each in (node.args[0], *flags))
        except NameError:
            return None, 0
        return pattern, sum(given)

    def _ways(self, name: str, sources: list[Source]) -> set[str]:
        readers = [each for each in sources if each is self or each.taken & {self.module, f"{self.module}.{name}"}]
        return {way for each in readers for way in each.calls[name]} if name else {WORST}


def last_name(node: ast.AST) -> str:
    """Return the last part of a dotted name; empty for another expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def target_of(node: ast.Assign | ast.AnnAssign) -> str:
    """Return the name that an assignment gives; empty for several names."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return last_name(targets[0]) if len(targets) == 1 else ""


def uses(package: Path) -> list[Use]:
    """Return every use of a pattern in a package."""
    sources = [Source(path, package) for path in sorted(package.rglob("*.py"))]
    return [use for each in sources for use in each.uses(sources)]


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
        near = {chr(code) for each in text for code in (ord(each) - 1, ord(each), ord(each) + 1) if 0 <= code < 0x110000}
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
                return "polynomial: two loops share a text" + ("" if first is not automaton.start else " (every position is tried)")
    return ""


def is_double(steps: list[Step], inside: set[Node]) -> bool:
    """Return whether two silent paths lead to the same node by the same character."""
    kept = [step for step in steps if step.node in inside]
    return any(a.node is b.node and a.mask & b.mask for place, a in enumerate(kept) for b in kept[:place])


PACKAGE = Path(__file__).resolve().parents[2] / "src" / "flagsvc"
ORIGINS = ("https://*.example.com", "https://*-*.example.com:*", "*://*a*a*a")
BUILT: dict[str, tuple[str, list[re.Pattern[str]] | list[re.Pattern[bytes]]]] = {
    "cli/batch/yaml_files.py f'^(?:{form})\\\\Z'": (
        "match",
        [pattern for rows in YamlReader.yaml_implicit_resolvers.values() for _, pattern in rows],
    ),
    "cli/parser.py message": ("sub", [re.compile(pattern) for pattern, _ in MESSAGES]),
    "proxy/api/answers.py written.encode()": ("fullmatch", [compile_origin(each) for each in ORIGINS]),
    "server/pages/problems.py pattern": (
        "fullmatch",
        [re.compile(each, re.DOTALL) for each, *_ in (*problems.ROWS, *problems.FIELDS, *problems.RULES)],
    ),
    "proxy/upstream.py form": ("fullmatch", [re.compile(form, re.DOTALL) for form, _ in FORMS]),
}
"""Patterns that are known at run time only → how they are called, and samples that the source itself makes."""

BOUNDED = {
    "cli/batch/files.py TOKEN": "the text was read as JSON, so each quotation mark has its other half, where a reading ends",
    "cli/migrating/env_files.py SINGLE": "a reading ends at the next quote, and the value of the next line begins with that quote",
    "cli/migrating/env_files.py DOUBLE": "a reading ends at the next quote, and the value of the next line begins with that quote",
    "pages/forms.py VALUE": "a value in quotes has at most 300 characters; all else is read up to the next comma or line",
    "proxy/api/answers.py written.encode()": "a wildcard is lazy in an atomic group: each part of the pattern is found once",
    "server/pages/problems.py pattern": "at most 1,000 characters of a text are looked at: less than 1 ms",
    "server/store/urls.py INNER": "a scheme has at most 51 characters, so each position is left after as many",
    "settings/load.py KEY": "a reading begins only where a part begins, and a part without a dot is read at most twice",
    "settings/option.py INJECTED": "`is_injected` bounds the name of a variable to 256 characters: less than 1 ms",
}
"""Pattern → what bounds its time, where the proof does not see it."""


@pytest.fixture(scope="module")
def found() -> list[Use]:
    """Give every use of a pattern in the source. Reading the source takes seconds, so no process does it that runs other tests."""
    return uses(PACKAGE)


def test_the_samples_stand_for_the_patterns_of_run_time(found: list[Use]) -> None:
    """BUILT has exactly the patterns that are built at run time, and the other patterns are found."""
    assert len(found) > 100
    assert not [path for path in PACKAGE.rglob("*.py") if re.search(r"from re import|import re as", path.read_text())]
    assert {use.name for use in found if use.pattern is None} == set(BUILT)


def test_patterns_take_linear_time(found: list[Use]) -> None:
    """No text makes the search go back more than a fixed number of times, or a row says what bounds the text.

    A pattern with a proof needs no row.
    """
    samples = [Use(name, each.pattern, each.flags & ~re.UNICODE, call) for name, (call, built) in BUILT.items() for each in built]
    known = [use for use in found if use.pattern is not None] + samples
    needed = {use.name for use in known if ambiguity(use.pattern or "", use.flags, use.call)}
    assert needed == set(BOUNDED)
    assert all(len(reason.split()) >= 5 for reason in BOUNDED.values())


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        (r"(a+)+$", "match"), (r"(a*)*b", "match"), (r"(a|a)*b", "match"), (r"(\w|\d\d)*-", "match"), (r"(?:\\.?|.)*x", "match"),
        (r"\s*(.*?)\s*\}\}", "match"), (r"a*a*b", "match"), (r"a*a*", "fullmatch"), (r"a*b?a*c", "match"), (r"\d+\.?\d*x", "match"),
        (r"a?(?:b*b*c)?", "match"), (r"(?:(?=.*x)a)*b", "match"), (r"(?i)k*\u212a*z", "match"), (r".{0,99}.{0,99}x", "match"),
        (r"\s+$", "search"), (r"\s++$", "search"), (r"/*$", "sub"), (r"\w+:.+", "search"), (r"x(?:[^y]*y)?", "finditer"),
        (r'".*"', "search"), (r"\[[^]]*\]", "sub"), (rb"a*a*b", "match"), (r"(?>a|ab)*+(?>.*)x", "search"),
    ],
)  # fmt: skip
def test_slow_patterns_are_told(pattern: str | bytes, call: str) -> None:
    """A pattern that takes more than linear time has no proof."""
    assert ambiguity(pattern, 0, call)


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        (r"\s+", "sub"), (r"[ \t]#.*", "sub"), (r"^bearer\s+", "sub"), (r"\w+\s+\w+", "fullmatch"), (r"a*a*", "match"),
        (r"(?:[^\"\\]|\\.)*\"", "match"), (r"\.|[\w$-]+(?:\.[\w$-]+)*", "fullmatch"), (r"a*+a*b", "match"), (r"(?>a*)b", "match"),
        (r"\s*+\S+x?", "match"), (r"(?s)\[(?:\\(?:.|\Z)|[^\]\\])*(?:\]|\Z)", "finditer"), (r"x(?:[^y]*y)?", "match"),
        (r"/{2,}", "sub"),
        (r"([a-z]{1,63}\.)*[a-z]{1,63}", "fullmatch"), (r"\[[^][]*\]", "sub"), (rb"[a-z]+=\d+", "match"),
        (r"(?!user:)[^:]*:.+", "match"),
    ],
)  # fmt: skip
def test_fast_patterns_are_told(pattern: str | bytes, call: str) -> None:
    """A pattern that takes linear time has a proof."""
    assert not ambiguity(pattern, 0, call)


def test_a_reference_to_a_group_has_no_proof() -> None:
    """What the proof does not understand is refused, not passed."""
    with pytest.raises(ValueError, match="there is no proof"):
        ambiguity(r"(a*)\1", 0, "match")
