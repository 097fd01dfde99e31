r"""Patterns in RE2's syntax, searched in time linear in the text, and bounded (behaviour: Patterns).

The pattern is found anywhere in the text unless it says otherwise. No pattern writes to standard error.

The reference's engine is a JavaScript port of RE2; where it and the C++ library differ:

- `\C` (a single byte), a group name given twice and a group name outside ASCII are errors there, so they are here;
- `\p{…}` there also knows names that are no scripts or general categories (`\p{LC}`, `\p{Emoji}`); here such a pattern is invalid;
- a lone surrogate there is a character of the category Cs; here it counts as U+FFFD.
"""

from __future__ import annotations

import re
from typing import Any, Final

PIECES: Final = r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\(?:.|\Z)|[^\]\\])*(?:\]|\Z)|\(\?P?<([^>(]*)>"
"""Matches the parts of a valid pattern that may contain or be a group's name: quoted text, escape, class, named group.

Each part begins where the previous one ended, also after a class without an end, so the time is linear in the pattern.
"""
LONGEST: Final = 65_536
"""The most bytes of a pattern. Only this limits the time in which RE2 reads it."""
MOST_CLASSES: Final = 256
"""The most class names (`\\pL`, `\\P{Greek}`) in a pattern.

Each stands for hundreds of ranges, and takes as long as hundreds of characters.
"""
MOST_CHOICES: Final = 10_000
"""The largest sum of the upper bounds of ranges (`{0,1000}`; 1 for `?`) in a pattern.

RE2's time is quadratic in adjacent ranges.
"""
RANGE: Final = r"\{[0-9]{1,4},([0-9]{1,4})\}"
MOST_MEMORY: Final = 8 * 1024 * 1024
"""The most bytes of a compiled pattern and of its memory during a search."""
MOST_STEPS: Final = 32 * 1024 * 1024
"""The most steps of one search: bytes of the text times instructions of the pattern. That is about an eighth of a second."""


class Regex:
    """A compiled pattern."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.size: int = compiled.programsize

    def search(self, text: str) -> bool:
        """Return whether the text contains a match. A lone surrogate counts as U+FFFD.

        Returns false, without a search, if a large pattern and a long text could take MOST_STEPS or more.
        """
        octets = encode(text)
        return len(octets) * self.size <= MOST_STEPS and self.compiled.search(octets) is not None


def compile_regex(pattern: str, case_insensitive: bool) -> Regex | None:
    """Return the compiled pattern; None if it is invalid, larger than RE2 allows, or could take long to compile."""
    octets = encode(pattern)
    if is_costly(pattern, len(octets)):
        return None
    import re2  # with the first pattern: two megabytes that a document without one does not need

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MOST_MEMORY
    options.never_capture = True
    options.case_sensitive = not case_insensitive
    try:
        compiled = re2.compile(octets, options)
    except re2.error:
        return None
    return Regex(compiled) if is_portable(pattern) else None


def is_costly(pattern: str, size: int) -> bool:
    """Return whether the compilation of a pattern of `size` bytes could take longer than about half a second."""
    if size > LONGEST or pattern.count("\\p") + pattern.count("\\P") > MOST_CLASSES:
        return True
    return pattern.count("?") + sum([int(most) for most in re.findall(RANGE, pattern)]) > MOST_CHOICES


def is_portable(pattern: str) -> bool:
    """Return whether the reference also accepts the names and bytes of a pattern that the C++ library accepts."""
    names: set[str] = set()
    for piece in re.finditer(PIECES, pattern, re.DOTALL):
        name: str | None = piece[1]
        if piece[0] == r"\C" or name in names or not (name or "").isascii():
            return False
        if name is not None:
            names.add(name)
    return True


def encode(text: str) -> bytes:
    """Return the text in UTF-8. Surrogate pairs are joined, and lone surrogates become U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")
