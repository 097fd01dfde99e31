"""Values of JSON as JavaScript converts them: texts, numbers, true and false (behaviour: Odd values in a configuration)."""

from __future__ import annotations

import math
from typing import Final

from flagsvc.engine.values import jsnumber


class Missing:
    """The type of MISSING."""


MISSING: Final = Missing()
"""Stands for a value that is not there. Null is different: JavaScript reads it as zero."""


def text_of(raw: object) -> str:
    """Return the result of `String(value)`: `undefined` for MISSING, the joined items for a list."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, (bool, int, float)):
        return jsnumber.scalar_text(raw)
    if isinstance(raw, list):
        return joined(raw)
    if raw is MISSING:
        return "undefined"
    return "null" if raw is None else "[object Object]"


def joined(items: list[object]) -> str:
    """Return the items of a list, and of the lists in it, with commas between them. Null is empty."""
    texts: list[str] = []
    waiting: list[object] = items[::-1]
    if not items:
        return ""
    while waiting:
        item = waiting.pop()
        if isinstance(item, list) and item:
            waiting += item[::-1]
        else:
            texts.append("" if item is None or isinstance(item, list) else text_of(item))
    return ",".join(texts)


def number_of(raw: object) -> float:
    """Return the result of `Number(value)`: 0 for null, NaN for MISSING and for an object."""
    if raw is None:
        return 0.0
    if isinstance(raw, bool):
        return 1.0 if raw else 0.0
    if isinstance(raw, (int, float)):
        return jsnumber.from_json(raw)
    return math.nan if raw is MISSING or isinstance(raw, dict) else jsnumber.parse(text_of(raw))


def is_true(raw: object) -> bool:
    """Return the result of `Boolean(value)`: a list or an object is true, even an empty one."""
    return isinstance(raw, (list, dict)) or (raw is not MISSING and bool(raw))


def is_scalar(raw: object) -> bool:
    """Return whether the value is a text, a number, true or false."""
    return isinstance(raw, (str, bool, int, float))
