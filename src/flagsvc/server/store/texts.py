"""What must hold of texts and names beyond the shape of a body, in the words of the wire (import validation 6.2; 6.3).

Lengths count as JavaScript counts them, in UTF-16 code units.
"""

from __future__ import annotations

from flagsvc.server.store.checks import RELATIVE, URL_FRIENDLY, invalid, told
from flagsvc.server.store.refusals import Detail

JS_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript takes for white space at the ends of a text."""
MOST_WORDS = 50
"""Words of one search."""


def length(text: str) -> int:
    """Return the length of a text in UTF-16 code units."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def text_problem(text: str, label: str, *, shortest: int = 1, longest: int | None = None) -> Detail | None:
    """Return what is wrong with a text, empty, too short or too long; None for a good one."""
    if not text:
        return told(f'"{label}" is not allowed to be empty')
    size = length(text)
    if size < shortest:
        return told(f'"{label}" length must be at least {shortest} characters long', text)
    if longest is not None and size > longest:
        return told(f'"{label}" length must be less than or equal to {longest} characters long', text)
    return None


def url_problem(text: str, label: str, *, shortest: int = 1, longest: int | None = None) -> Detail | None:
    """Return what is wrong with a name that becomes a part of a path; None for a good one."""
    if text and (not URL_FRIENDLY.match(text) or text in RELATIVE):
        return told(f'"{label}" must be URL friendly', text)
    return text_problem(text, label, shortest=shortest, longest=longest)


def parts(text: str, label: str, most: int) -> list[str]:
    """Return what stands between the commas of a text, trimmed, each once. Raises Refusal (400) for more than `most`."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if len(found) > most:
        raise invalid(told(f'"{label}" must contain less than or equal to {most} items'))
    return found


def words(text: str, label: str = "query") -> list[str]:
    """Return the words of a search, separated by commas, each once. Raises Refusal (400) for too many."""
    return [word for word in parts(text, label, MOST_WORDS) if word]


def trimmed(text: str) -> str:
    """Return a text without the white space at its ends."""
    return text.strip(JS_SPACE)
