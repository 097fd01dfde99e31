"""JSON values in the notation of JavaScript, for messages that show the sent value (import validation 3).

Numbers are doubles. Keys that look like an index come first. Lone surrogates are escaped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from flagsvc.engine.values import jsnumber

INDEX: Final = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z", re.ASCII)
LARGEST_INDEX: Final = 2**32 - 2
SURROGATE: Final = re.compile("[\ud800-\udfff]")
WORDS: Final[dict[object, str]] = {None: "null", True: "true", False: "false"}


class Absent:
    """The type of ABSENT."""


ABSENT: Final = Absent()
"""JavaScript's `undefined`: there is no value."""


def number_text(number: float) -> str:
    """Return the text of a number, which may be an integer of any size: `7`, `1e+21`, `12345678901234567000`."""
    return jsnumber.to_text(jsnumber.from_int(number) if isinstance(number, int) else number)


def keys_in_order(keys: Iterable[str]) -> list[str]:
    """Return the keys of an object in JavaScript's order: indices ascending, then the others as they came."""
    names = list(keys)
    indices = [name for name in names if INDEX.match(name) and int(name) <= LARGEST_INDEX]
    if not indices:
        return names
    first = sorted(indices, key=int)
    held = set(first)
    return [*first, *(name for name in names if name not in held)]


def to_json(value: object) -> str:
    """Return a value as compact JSON, at any depth; `undefined` for ABSENT."""
    return "".join(pieces(value))


def pieces(value: object) -> Iterator[str]:
    """Yield the text of a value in pieces. A list is the stack, so that deep values need no recursion."""
    open_ones: list[Iterator[tuple[str, object]]] = []
    closers: list[str] = []
    yield from begin(value, open_ones, closers)
    while open_ones:
        member = next(open_ones[-1], None)
        if member is None:
            open_ones.pop()
            yield closers.pop()
        else:
            yield member[0]
            yield from begin(member[1], open_ones, closers)


def begin(value: object, open_ones: list[Iterator[tuple[str, object]]], closers: list[str]) -> Iterator[str]:
    """Yield the text of a scalar, or the opening bracket of a container, which then follows."""
    if isinstance(value, dict):
        open_ones.append(members(value))
        closers.append("}")
        yield "{"
    elif isinstance(value, list):
        open_ones.append(items(value))
        closers.append("]")
        yield "["
    else:
        yield scalar(value)


def members(value: dict[object, object]) -> Iterator[tuple[str, object]]:
    named = {name if isinstance(name, str) else str(name): held for name, held in value.items()}
    for index, name in enumerate(keys_in_order(named)):
        yield f"{',' if index else ''}{quoted(name)}:", named[name]


def items(value: list[object]) -> Iterator[tuple[str, object]]:
    """Yield the items of an array: the text before the item, and the item."""
    for index, item in enumerate(value):
        yield "," if index else "", item


def scalar(value: object) -> str:
    """Return the text of a scalar. A value that JSON does not know is shown as its text."""
    if value is None or isinstance(value, bool):
        return WORDS[value]
    if isinstance(value, int | float):
        text = number_text(value)
        return text if math.isfinite(jsnumber.parse(text)) else "null"
    return "undefined" if isinstance(value, Absent) else quoted(value if isinstance(value, str) else str(value))


def quoted(text: str) -> str:
    """Return a text in quotation marks."""
    return SURROGATE.sub(lambda found: f"\\u{ord(found[0]):x}", json.dumps(text, ensure_ascii=False))


def as_string(value: object) -> str:
    """Return what JavaScript's `String(value)` gives for a scalar or an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return "[object Object]" if isinstance(value, dict) else scalar(value)
