r"""Matches names: RE2, in time linear in the name, or else the package `regex`, which goes back within a limit of time.

Both engines get the same text. RE2 refuses look-around. No engine runs references to groups,
because `regex` misses some of their matches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import re2
import regex

from flagsvc.server.store.patterns.grammar import (
    Alternation,
    Assertion,
    Group,
    LookAround,
    Node,
    Ranges,
    Reference,
    Repeat,
    Sequence,
    UncheckedNameError,
    UnitSet,
    parse,
    utf16_units,
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
"""The most parts that an engine gets (`count_parts`). RE2 compiles them in 30 ms, and `regex` in 150 ms."""

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
            "look-ahead, look-behind or large counts",
        )


@lru_cache(maxsize=16)
def compile_pattern(pattern: str) -> Search:
    """Return the search for `^` + pattern + `$`.

    Raises `InvalidPattern` for a pattern that JavaScript rejects, and `UncheckedNameError` for a pattern that is too large or has a
    reference to a group.
    """
    node = parse(pattern)
    text = translate(node)
    linear = compile_re2(text) if count_parts(node, re2_copies) <= MAX_PARTS else None
    if linear is not None:
        return linear
    if count_parts(node, regex_copies) > MAX_PARTS:
        raise UncheckedNameError(f"it has more than {MAX_PARTS:,} parts when its counts are written out")
    return compile_regex(text)


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


def count_parts(node: Node, copies: Callable[[Repeat], int]) -> int:
    """Return the number of ranges, assertions and groups of a node, with the copies that an engine makes of what is repeated."""
    if isinstance(node, UnitSet):
        return max(1, len(node.ranges))
    if isinstance(node, Sequence | Alternation):
        return max(1, sum(count_parts(each, copies) for each in node.nodes))
    if isinstance(node, Group | LookAround):
        return 1 + count_parts(node.node, copies)
    return count_parts(node.node, copies) * copies(node) if isinstance(node, Repeat) else 1


def re2_copies(node: Repeat) -> int:
    """Return the copies that RE2 makes. An optional copy counts threefold: RE2 merges these in a time quadratic in their number."""
    return max(1, node.least + 3 * ((node.most or node.least) - node.least))


def regex_copies(node: Repeat) -> int:
    """Return the copies that `regex` makes: the copies that must be there, and a copy for all that are optional."""
    return max(1, node.least + (node.most != node.least))


SURROGATES: Final = (0xD800, 0xDFFF)
STAND_IN_OFFSET: Final = 0xF0000 - 0xD800
"""The offset from a surrogate to its replacement, because RE2 accepts no halves of surrogate pairs."""
ASSERTIONS: Final = {"^": r"\A", "$": r"\z", "b": r"\b", "B": r"(?!\b)"}
r"""RE2 also finds `\B` within a character."""
NEVER_MATCHES: Final = "[^\\x00-\U0010ffff]"


def translate(node: Node) -> str:
    """Return the text of a node for the engines. Raises `UncheckedNameError` for a reference to a group."""
    if isinstance(node, UnitSet):
        return write_class(node.ranges)
    if isinstance(node, Assertion):
        return ASSERTIONS[node.kind]
    if isinstance(node, Group):
        return f"(?:{translate(node.node)})"
    if isinstance(node, LookAround):
        return f"(?{'<' * node.behind}{'!' if node.negated else '='}{translate(node.node)})"
    if isinstance(node, Sequence | Alternation):
        return ("" if isinstance(node, Sequence) else "|").join(map(translate, node.nodes))
    if isinstance(node, Reference):
        raise UncheckedNameError("it refers to a group", "have the pattern made without references to groups")
    most = "" if node.most is None else str(node.most)
    return f"(?:{translate(node.node)}){{{node.least},{most}}}" + ("" if node.greedy else "?")


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
    return unit + STAND_IN_OFFSET if SURROGATES[0] <= unit <= SURROGATES[1] else unit
