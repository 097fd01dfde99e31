r"""Matches names: RE2, in time linear in the name, or else the package `regex`, which goes back within a limit of time.

Both engines get the same text. RE2 refuses what it does not support: look-around and references to groups.

The text for `regex` makes three rules of JavaScript explicit:

- A reference to a group without a match matches nothing. So each such group matches the empty text first.
- Each round of a loop resets the groups in the loop. So they match the empty text again.
- An optional round matches some text. So a group takes the rest of the name before the round; after the round the rest is another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import re2
import regex

from flagsvc.server.store.patterns.characters import Ranges, utf16_units
from flagsvc.server.store.patterns.grammar import (
    Alternation,
    Assertion,
    Group,
    LookAround,
    Node,
    Reference,
    Repeat,
    Sequence,
    UncheckedNameError,
    UnitSet,
    parse,
)

NAME_SECONDS: Final = 0.05
"""Seconds of a core for one name."""
REQUEST_SECONDS: Final = 0.5
"""Seconds of a core for all the names of a request."""
RE2_WORK: Final = 12_800_000
"""The most work of RE2 for one name, its instructions times the bytes of the name: 50 ms at worst. RE2 takes no limit of time."""
RE2_MEMORY: Final = 2 * 1024 * 1024
"""Bytes of a pattern that RE2 compiled, and of RE2's cache while it searches."""
MAX_PARTS: Final = 10_000
"""The most parts of a pattern with its counts written out, as both engines do. RE2 takes 30 ms for so many."""
RE2_OPTIONAL_WEIGHT: Final = 3
"""The parts of an optional repetition in RE2, which merges adjacent ones in a time quadratic in their number."""
MAX_TEXT: Final = 200_000
"""The most characters of a text for an engine."""

Search: TypeAlias = Callable[[str, float], bool]
"""Returns whether an encoded name matches. Raises TimeoutError after so many seconds of a core."""

REGEX_LOCK: Final = threading.Lock()
"""Held during a search by `regex`, which counts the time of all threads of the process."""


class SearchTime:
    """The time that is left for the names of a request."""

    def __init__(self, seconds: float = REQUEST_SECONDS) -> None:
        self.left = seconds

    def verdict(self, search: Search, name: str) -> bool | UncheckedNameError:
        """Return whether a name matches, or why that cannot be checked."""
        begun = time.thread_time()
        try:
            if self.left > 0:
                return search(encode_text(name), min(NAME_SECONDS, self.left))
        except TimeoutError:
            pass
        finally:
            self.left -= time.thread_time() - begun
        return UncheckedNameError(
            "it takes too long",
            "use shorter names or fewer features at once, or have the pattern made simpler: it has repetition within repetition, "
            "look-ahead, look-behind, references to groups or large counts",
        )


@lru_cache(maxsize=16)
def compile_pattern(pattern: str) -> Search:
    """Return the search for `^` + pattern + `$`.

    Raises `InvalidPattern` for a pattern that JavaScript rejects, and `UncheckedNameError` for a pattern that is too large.
    """
    node = parse(pattern)
    if count_parts(node, 0) > MAX_PARTS:
        raise too_large()
    text = Translator(node).text
    linear = compile_re2(text) if count_parts(node, RE2_OPTIONAL_WEIGHT) <= MAX_PARTS else None
    return linear or compile_regex(text)


def too_large() -> UncheckedNameError:
    """Return the reason why no engine gets a pattern."""
    return UncheckedNameError(f"it has more than {MAX_PARTS:,} parts when its counts are written out")


def compile_re2(text: str) -> Search | None:
    """Return RE2's search; None where RE2 does not support the pattern."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = RE2_MEMORY
    try:
        compiled = re2.compile(text.encode(), options)
    except re2.error:
        return None

    def search(name: str, seconds: float) -> bool:
        data = name.encode()
        if compiled.programsize * (len(data) + 1) > RE2_WORK:
            raise TimeoutError
        return compiled.search(data) is not None

    return search


def compile_regex(text: str) -> Search:
    """Return the search by `regex`, during which other threads run."""
    compiled = regex.compile(text, regex.ASCII | regex.VERSION0)

    def search(name: str, seconds: float) -> bool:
        with REGEX_LOCK:
            return compiled.search(name, concurrent=True, timeout=seconds) is not None

    return search


def count_parts(node: Node, optional_weight: int) -> int:
    """Return the number of parts of a node with its counts written out: ranges, assertions and groups."""
    if isinstance(node, UnitSet):
        return max(1, len(node.ranges))
    if isinstance(node, Sequence | Alternation):
        return sum(count_parts(each, optional_weight) for each in node.nodes)
    if isinstance(node, Group | LookAround):
        return 1 + count_parts(node.node, optional_weight)
    if isinstance(node, Repeat):
        choices = (node.most or node.least) - node.least
        return count_parts(node.node, optional_weight) * max(1, node.least + optional_weight * choices)
    return 1


SURROGATES: Final = (0xD800, 0xDFFF)
STAND_IN_OFFSET: Final = 0xF0000 - 0xD800
"""The offset from a surrogate to its replacement, because RE2 accepts no halves of surrogate pairs."""
ASSERTIONS: Final = {"^": r"\A", "$": r"\z", "b": r"\b", "B": r"(?!\b)"}
r"""RE2 also finds `\B` within a character."""
NEVER_MATCHES: Final = "[^\\x00-\U0010ffff]"


class Translator:
    """Writes the text of a pattern for the engines. Raises `UncheckedNameError` for a text that is too long."""

    def __init__(self, node: Node) -> None:
        self._referenced = sorted(find_references(node))
        self._open: set[int] = set()
        self._loops = 0
        self.text = f"{self._reset(self._referenced)}(?:{self._write(node, behind=False)})"

    def _write(self, node: Node, *, behind: bool) -> str:
        """Return the text of a node. `behind`: it is read from right to left, as in a look-behind."""
        if isinstance(node, UnitSet):
            return write_class(node.ranges)
        if isinstance(node, Assertion):
            return ASSERTIONS[node.kind]
        if isinstance(node, Reference):
            return "" if node.number in self._open else f"(?P=g{node.number})"
        if isinstance(node, Sequence | Alternation):
            mark = "" if isinstance(node, Sequence) else "|"
            return mark.join(self._write(each, behind=behind) for each in node.nodes)
        if isinstance(node, LookAround):
            return f"(?{'<' * node.behind}{'!' if node.negated else '='}{self._write(node.node, behind=node.behind)})"
        return self._group(node, behind) if isinstance(node, Group) else self._repeat(node, behind)

    def _group(self, node: Group, behind: bool) -> str:
        if node.number not in self._referenced:
            return f"(?:{self._write(node.node, behind=behind)})"
        self._open.add(node.number)
        inner = self._write(node.node, behind=behind)
        self._open.remove(node.number)
        return f"(?P<g{node.number}>{inner})"

    def _repeat(self, node: Repeat, behind: bool) -> str:
        lazy = "" if node.greedy else "?"
        inner = self._write(node.node, behind=behind)
        reset = self._reset([each for each in self._referenced if node.groups[0] <= each < node.groups[1]])
        needed = f"(?:{in_order([reset, inner], behind)})"
        if not self._referenced or isinstance(node.node, Reference) or not may_be_empty(node.node):
            return needed + write_count(node.least, node.most) + lazy
        self._loops += 1
        before, after = f"(?=(?P<r{self._loops}>(?s:.*)))", f"(?!(?P=r{self._loops})\\z)"
        needed += write_count(node.least, node.least)
        optional = f"(?:{in_order([before, reset, inner, after], behind)})"
        optional += write_count(0, None if node.most is None else node.most - node.least) + lazy
        if len(needed) + len(optional) > MAX_TEXT:
            raise too_large()
        return in_order([needed if node.least else "", optional if node.most != node.least else ""], behind)

    def _reset(self, groups: list[int]) -> str:
        """Return what sets groups to the empty text."""
        return "".join(f"(?P<g{each}>)" for each in groups)


def find_references(node: Node) -> set[int]:
    """Return the numbers of the groups that a node refers to."""
    if isinstance(node, Reference):
        return {node.number}
    if isinstance(node, Sequence | Alternation):
        return set().union(*(find_references(each) for each in node.nodes))
    return find_references(node.node) if isinstance(node, Group | LookAround | Repeat) else set()


def in_order(texts: list[str], behind: bool) -> str:
    """Return texts in the order in which they are read."""
    return "".join(reversed(texts) if behind else texts)


def may_be_empty(node: Node) -> bool:
    """Return whether a node may match the empty text."""
    if isinstance(node, Sequence):
        return all(may_be_empty(each) for each in node.nodes)
    if isinstance(node, Alternation):
        return any(may_be_empty(each) for each in node.nodes)
    if isinstance(node, Repeat):
        return node.least == 0 or may_be_empty(node.node)
    return may_be_empty(node.node) if isinstance(node, Group) else not isinstance(node, UnitSet)


def write_count(least: int, most: int | None) -> str:
    """Return a count; None is no limit."""
    return f"{{{least},{'' if most is None else most}}}"


def write_class(ranges: Ranges) -> str:
    """Return a set of units as a class, with replaced surrogates."""
    first, last = SURROGATES
    parts = [part for low, high in ranges for part in ((low, min(high, first - 1)), (max(low, last + 1), high))]
    halves = [(max(low, first), min(high, last)) for low, high in ranges]
    parts += [(replace_surrogate(low), replace_surrogate(high)) for low, high in halves if low <= high]
    inner = "".join(f"{write_unit(low)}-{write_unit(high)}" for low, high in parts if low <= high)
    return f"[{inner}]" if inner else NEVER_MATCHES


def write_unit(code: int) -> str:
    """Return a character as a class has it."""
    return f"\\x{code:02x}" if code < 0x80 else chr(code)


def encode_text(text: str) -> str:
    """Return a text with one character per unit, and replaced surrogates."""
    return text if text.isascii() else "".join(chr(replace_surrogate(each)) for each in utf16_units(text))


def replace_surrogate(unit: int) -> int:
    """Return a unit, or the replacement of a surrogate."""
    return unit + STAND_IN_OFFSET if SURROGATES[0] <= unit <= SURROGATES[1] else unit
