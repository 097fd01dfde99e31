r"""Nodes in the syntax of RE2, as far as it has them: it searches in time linear in the text.

RE2 takes no halves of surrogate pairs: in pattern and text others stand for them. `\B` is left out, since RE2 finds it within a
character, too.
"""

from __future__ import annotations

from typing import Final

import re2

from flagsvc.server.store.patterns.nodes import Alternation, Edge, Group, Node, One, Repeat, Sequence
from flagsvc.server.store.patterns.units import Ranges, units

SURROGATES: Final = (0xD800, 0xDFFF)
STAND_INS: Final = 0xF0000 - 0xD800
"""What is added to a surrogate."""
EDGES: Final = {"^": r"\A", "$": r"\z", "b": r"\b"}
NOTHING: Final = r"[^\x{0}-\x{10ffff}]"
MOST_MEMORY: Final = 2 * 1024 * 1024
"""Bytes of a compiled pattern and of what it remembers while it searches."""
MOST_SIZE: Final = 10_000
"""Ranges of units in a pattern, those in repetitions as often as they are repeated: RE2 writes them out, in 30 ms."""
WEIGHT_OF_A_CHOICE: Final = 3
"""What one repetition more counts that may be or not: RE2 joins neighbouring ones, in a time that is the square of their number."""
MOST_REPEATS: Final = 1_000
"""The largest count that RE2 takes."""


class TooLargeForRe2(Exception):  # noqa: N818  (a verdict on the pattern)
    """RE2 does not have what a pattern needs, or would take long to read it."""


class Linear:
    """A pattern that RE2 searches for. Raises `TooLargeForRe2`."""

    def __init__(self, node: Node) -> None:
        size(node)
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = MOST_MEMORY
        try:
            self._compiled = re2.compile(written(node).encode(), options)
        except re2.error:
            raise TooLargeForRe2 from None
        self._size: int = self._compiled.programsize

    def cost(self, text: bytes) -> int:
        """Return the work of a search at worst: instructions of the pattern times bytes of the text."""
        return self._size * (len(text) + 1)

    def search(self, text: bytes) -> bool:
        """Return whether a text, as `encoded` has it, is found."""
        return self._compiled.search(text) is not None


def encoded(text: str) -> bytes:
    """Return a text as `Linear` takes it."""
    if text.isascii():
        return text.encode()
    return "".join(chr(stand_in(each)) for each in units(text)).encode()


def stand_in(unit: int) -> int:
    """Return what stands for a unit."""
    return unit + STAND_INS if SURROGATES[0] <= unit <= SURROGATES[1] else unit


def size(node: Node) -> int:
    """Return how many ranges RE2 gets to see. Raises `TooLargeForRe2`, also for what RE2 does not have."""
    if isinstance(node, One):
        found = max(1, len(node.ranges))
    elif isinstance(node, Edge) and node.kind in EDGES:
        found = 1
    elif isinstance(node, Group):
        found = 1 + size(node.node)
    elif isinstance(node, Sequence | Alternation):
        found = sum(size(each) for each in node.nodes)
    elif isinstance(node, Repeat) and max(node.least, node.most or 0) <= MOST_REPEATS:
        choices = (node.most or node.least) - node.least
        found = size(node.node) * max(1, node.least + WEIGHT_OF_A_CHOICE * choices)
    else:
        raise TooLargeForRe2
    if found > MOST_SIZE:
        raise TooLargeForRe2
    return found


def written(node: Node) -> str:
    """Return a node in RE2's syntax."""
    if isinstance(node, One):
        return of_ranges(node.ranges)
    if isinstance(node, Edge):
        return EDGES[node.kind]
    if isinstance(node, Group):
        return f"(?:{written(node.node)})"
    if isinstance(node, Sequence):
        return "".join(written(each) for each in node.nodes)
    if isinstance(node, Alternation):
        return "|".join(written(each) for each in node.nodes)
    assert isinstance(node, Repeat)
    most = "" if node.most is None else str(node.most)
    return f"{written(node.node)}{{{node.least},{most}}}" + ("" if node.greedy else "?")


def of_ranges(ranges: Ranges) -> str:
    """Return a set as a class; halves of surrogate pairs become what stands for them."""
    first, last = SURROGATES
    parts = [part for low, high in ranges for part in ((low, min(high, first - 1)), (max(low, last + 1), high))]
    halves = [(max(low, first), min(high, last)) for low, high in ranges]
    parts += [(stand_in(low), stand_in(high)) for low, high in halves if low <= high]
    inner = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in parts if low <= high)
    return f"[{inner}]" if inner else NOTHING
