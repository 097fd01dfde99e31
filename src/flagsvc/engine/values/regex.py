r"""Patterns in RE2's syntax, searched in time linear in the text, and bounded (behaviour: Patterns).

The pattern is found anywhere in the text unless it says otherwise. Nothing is written to standard error, whatever the pattern.

The reference's engine is a JavaScript port of RE2; where it and the C++ library differ:

- `\C` (a single byte), a group name given twice and a group name outside ASCII are errors there, so they are here;
- `\p{…}` there also knows names that are no scripts or general categories (`\p{LC}`, `\p{Emoji}`); here such a pattern is invalid;
- a lone surrogate there is a character of the category Cs; here it counts as U+FFFD.
"""

from __future__ import annotations

import re
from typing import Any, Final

PIECES: Final = r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.?|[^\]\\])*+(?:\]|\Z)|\(\?P?<([^>(]*)>"
"""What may hold or be a name of a group in a valid pattern: quoted text, an escape, a class, the opening of a named group.

Each begins where the one before ended, also where a class is never closed: the time is linear in the pattern.
"""
LONGEST: Final = 65_536
"""Bytes of a pattern: what RE2 reads, and so the time of that, is bounded by nothing but the pattern's length."""
MOST_CLASSES: Final = 256
r"""Names of classes (`\pL`, `\P{Greek}`) in a pattern: each is hundreds of ranges, and takes as long as hundreds of characters."""
MOST_CHOICES: Final = 10_000
"""Upper bounds of ranges (`{0,1000}`; of `?` it is 1) in a pattern, added up: RE2 joins neighbours in the square of that time."""
RANGE: Final = r"\{[0-9]{1,4},([0-9]{1,4})\}"
MOST_MEMORY: Final = 8 * 1024 * 1024
"""Bytes of a compiled pattern and of what it remembers while it searches."""
MOST_STEPS: Final = 32 * 1024 * 1024
"""Steps of one search at worst, the bytes of the text times the instructions of the pattern: about an eighth of a second."""


class Regex:
    """A compiled pattern."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.size: int = compiled.programsize

    def search(self, text: str) -> bool:
        """Tell whether the pattern occurs in the text. A lone surrogate counts as U+FFFD.

        A large pattern is not looked for in a long text, and so does not occur in it, where that could take MOST_STEPS and more.
        """
        octets = encode(text)
        return len(octets) * self.size <= MOST_STEPS and self.compiled.search(octets) is not None


def compile_regex(pattern: str, case_insensitive: bool) -> Regex | None:
    """Return the compiled pattern, None where it is not valid, larger than RE2 allows, or where compiling it could take long."""
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
    """Tell whether compiling a pattern of `size` bytes could take longer than about half a second."""
    if size > LONGEST or pattern.count("\\p") + pattern.count("\\P") > MOST_CLASSES:
        return True
    return pattern.count("?") + sum([int(most) for most in re.findall(RANGE, pattern)]) > MOST_CHOICES


def is_portable(pattern: str) -> bool:
    """Tell whether a pattern that the C++ library takes is one for the reference too, as far as names and bytes go."""
    names: set[str] = set()
    for piece in re.finditer(PIECES, pattern, re.DOTALL):
        name: str | None = piece[1]
        if piece[0] == r"\C" or name in names or not (name or "").isascii():
            return False
        if name is not None:
            names.add(name)
    return True


def encode(text: str) -> bytes:
    """Return the text in UTF-8: halves of a surrogate pair joined, lone ones replaced by U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")
