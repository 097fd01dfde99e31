"""Text as JavaScript sees it: what is blank, where a list is split, lower case, and the bytes that are hashed.

A Python string is a sequence of code points, a JavaScript string one of UTF-16 units. Where that makes a difference, this
file decides; otherwise the string methods of Python are used as they are.
"""

from __future__ import annotations

from typing import Any, Final

SPACES: Final = (
    "\t\n\v\f\r \u00a0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""White space and line ends of the ECMAScript standard. Python's own `strip` takes a few more (U+001C, U+0085) and one less."""


def trim(text: str) -> str:
    """Return the text without blanks at both ends, as `String.prototype.trim` (behaviour: List constraints)."""
    return text.strip(SPACES)


def split_list(text: str) -> list[str]:
    """Return the parts of a list written with commas, without the blanks beside the commas.

    This is what splitting at `/\\s*,\\s*/` gives: blanks before the first and behind the last part stay, empty parts too
    (behaviour: Names of variables). The strategies userWithId, remoteAddress and applicationHostname split so as well.
    """
    parts = text.split(",")
    last = len(parts) - 1
    for index, part in enumerate(parts):
        if index > 0:
            part = part.lstrip(SPACES)
        parts[index] = part if index == last else part.rstrip(SPACES)
    return parts


def lower(text: str) -> str:
    """Return the text in lower case, as `toLocaleLowerCase` in a locale without special rules.

    Python and JavaScript both apply the full mapping of Unicode (`İ` becomes two code points, a final sigma `ς`); they can
    only differ for letters that are newer than the Unicode version of the running interpreter.
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
