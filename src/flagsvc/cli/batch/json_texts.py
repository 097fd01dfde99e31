"""Finds numbers of a JSON file that stand where a text belongs and are not written as servers would write them.

A server takes the number 1.10 for the text `1.1`, so a constraint would name another version. A text has quotation marks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

from flagsvc.http.shapes import Schema, Shape
from flagsvc.http.shapes.places import Places, is_canonical, takes_text

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
"""A text or a number of JSON."""


class Number(NamedTuple):
    """A number as written, and how many are before it in the file."""

    word: str
    before: int


def lost_texts(text: str, shape: Shape) -> Iterator[tuple[str, int]]:
    """Yield the numbers that would be other texts, each with its line. `text` is JSON."""
    odd = False
    before = count()

    def mark(word: str) -> Number:
        nonlocal odd
        odd = odd or not is_canonical(word)
        return Number(word, next(before))

    value = json.loads(text, parse_float=mark, parse_int=mark)
    pending: list[tuple[object, Schema | None]] = [(value, shape.schema())] if odd else []
    places = Places(shape)
    while pending:
        each, schema = pending.pop()
        found = places.resolve(schema)
        if isinstance(each, Number):
            if found is not None and takes_text(found) and not is_canonical(each.word):
                yield each.word, line_of(text, each)
        elif isinstance(each, dict):
            pending += [(held, places.member(found, key)) for key, held in each.items()]
        elif isinstance(each, list):
            pending += [(held, places.member(found, None)) for held in each]


def line_of(text: str, number: Number) -> int:
    """Return the line of a number."""
    numbers = (found for found in TOKEN.finditer(text) if not found[0].startswith('"'))
    return text.count("\n", 0, next(islice(numbers, number.before, None)).start()) + 1
