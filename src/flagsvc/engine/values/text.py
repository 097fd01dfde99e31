"""Text with JavaScript's rules: blanks, splitting of lists, lower case, and the bytes that are hashed.

A Python string is a sequence of code points, a JavaScript string of UTF-16 units. This module has the functions for which the
difference counts. Otherwise Python's string methods are used.
"""

from __future__ import annotations

from typing import Any, Final

SPACES: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""White space and line ends of the ECMAScript standard. Python's `strip` removes a few others (U+001C, U+0085) and misses one."""


def trim(text: str) -> str:
    """Return the text without blanks at both ends, like `String.prototype.trim` (behaviour: List constraints)."""
    return text.strip(SPACES)


def split_list(text: str) -> list[str]:
    """Return the parts of a comma-separated list, without the blanks around the commas.

    This equals a split at `/\\s*,\\s*/`: blanks before the first part and after the last one stay, and so do empty parts
    (behaviour: Names of variables). The strategies userWithId, remoteAddress and applicationHostname split their lists like
    this.
    """
    parts = text.split(",")
    last = len(parts) - 1
    for index, part in enumerate(parts):
        if index > 0:
            part = part.lstrip(SPACES)
        parts[index] = part if index == last else part.rstrip(SPACES)
    return parts


def lower(text: str) -> str:
    """Return the text in lower case, like `toLocaleLowerCase` in a locale without special rules.

    Python and JavaScript both use Unicode's full mapping (`İ` becomes two code points, a final sigma `ς`). They differ only for
    letters that are newer than the interpreter's Unicode version.
    """
    if text.isascii():
        return text.lower()
    anything: Any = text  # called on a `str`, mypyc would put in its own mapping, which knows no final sigma
    return str(anything.lower())


def low_bytes(text: str) -> bytes:
    """Return the low byte of each UTF-16 unit: the bytes that the reference hashes (behaviour: Hash)."""
    if text.isascii():
        return text.encode("ascii")
    return text.encode("utf-16-le", "surrogatepass")[::2]
