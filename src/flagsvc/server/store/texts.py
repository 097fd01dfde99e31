"""Checks of texts and names that go beyond the shape of a body, with the API's messages (import validation 6.2; 6.3).

Lengths count as JavaScript counts them, in UTF-16 code units.
"""

from __future__ import annotations

import re
from typing import Any

from flagsvc.http.client_query import RELATIVE_PATHS, URL_FRIENDLY
from flagsvc.server.store.checks import invalid, make_detail
from flagsvc.server.store.errors import Detail

JS_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The white space that JavaScript's `trim` removes."""
SHORTEST_TAG, LONGEST_TAG = 2, 50
"""UTF-16 code units of a tag, and of its type."""
MAX_WORDS = 50
"""The most words of one search."""
MAX_SEARCHED = 1000
"""The most characters of one search: comparing takes up to as many steps for each stored character."""


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 code units."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def shorten(text: str, most: int) -> str:
    """Return a text on one line, of printable characters, with at most `most` UTF-16 code units; a cut is shown."""
    shown = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    if utf16_length(shown) <= most:
        return shown
    kept = shown.encode("utf-16-le")[: 2 * (most - 1)].decode("utf-16-le", "ignore")
    return f"{kept}\u2026"


def text_problem(text: str, label: str, *, shortest: int = 1, longest: int | None = None) -> Detail | None:
    """Return what is wrong with a text: empty, too short or too long; None for a valid one."""
    if not text:
        return make_detail(f'"{label}" is not allowed to be empty')
    size = utf16_length(text)
    if size < shortest:
        return make_detail(f'"{label}" length must be at least {shortest} characters long', text)
    if longest is not None and size > longest:
        return make_detail(f'"{label}" length must be less than or equal to {longest} characters long', text)
    return None


def url_problem(text: str, label: str, *, shortest: int = 1, longest: int | None = None) -> Detail | None:
    """Return what is wrong with a name that is part of a path; None for a valid one."""
    if text and (not URL_FRIENDLY.match(text) or text in RELATIVE_PATHS):
        return make_detail(f'"{label}" must be URL friendly', text)
    return text_problem(text, label, shortest=shortest, longest=longest)


def tag_problems(kind: str, value: str) -> list[Detail]:
    """Return what is wrong with a tag of this type and value."""
    bounds = {"shortest": SHORTEST_TAG, "longest": LONGEST_TAG}
    problems = (text_problem(value, "value", **bounds), url_problem(kind, "type", **bounds))
    return [problem for problem in problems if problem is not None]


def split_list(text: str, label: str, most: int) -> list[str]:
    """Return the items of a comma-separated text, stripped, without repeats. Raises CallerError (400) for more than `most`."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if len(found) > most:
        raise invalid(make_detail(f'"{label}" must contain less than or equal to {most} items'))
    return found


def split_words(text: str) -> list[str]:
    """Return the comma-separated words of a search, without repeats. Raises CallerError (400) for too many or too long ones."""
    found = [word for word in split_list(text, "query", MAX_WORDS) if word]
    check_searched("".join(found), "query")
    return found


def check_searched(text: str, label: str) -> None:
    """Raise CallerError (400) for a text that is too long to be searched for."""
    if len(text) > MAX_SEARCHED:
        raise invalid(make_detail(f'"{label}" length must be less than or equal to {MAX_SEARCHED} characters long'))


def strip_whitespace(text: str) -> str:
    """Return a text without the white space at its ends."""
    return text.strip(JS_SPACE)


def contains(value: Any, wanted: re.Pattern[str]) -> bool:
    """Return whether any text in a JSON value, keys included, matches."""
    if isinstance(value, str):
        return wanted.search(value) is not None
    if isinstance(value, dict):
        return any(contains(each, wanted) for pair in value.items() for each in pair)
    return isinstance(value, list) and any(contains(each, wanted) for each in value)
