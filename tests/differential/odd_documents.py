"""Documents with one odd value each: every kind of part that real documents have, of which one value is another or missing."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import diff_documents
from odd_base import BASE

Json = dict[str, Any]
Path = tuple[str | int, ...]

MISSING = object()
VALUES: dict[str, Any] = {
    "missing": MISSING,
    "null": None,
    "zero": 0,
    "a number": 7,
    "a number with a fraction": 333.3,
    "a small fraction": 0.5,
    "a negative number": -5,
    "a huge number": 1e300,
    "a whole number beyond 2^53": 10**20,
    "a number in quotes": "500",
    "a fraction in quotes": "333.3",
    "zero in quotes": "0",
    "a text": "odd",
    "a text with commas": "blue,green",
    "an empty text": "",
    "true in quotes": "true",
    "false in quotes": "false",
    "true": True,
    "false": False,
    "an empty list": [],
    "a list of a text": ["userId"],
    "a list of a number": [50],
    "a list of null": [None],
    "an empty object": {},
    "an object": {"odd": 1},
}
"""Name of an odd value → the value. `missing`: the key or the item is not there."""


class Odd(NamedTuple):
    """A document, the place of its odd value, and the name of the value."""

    document: Json
    path: Path
    value: str

    def place(self) -> str:
        """Return the kind of the place: its keys, without the numbers in lists."""
        return ".".join("[]" if isinstance(each, int) else each for each in self.path).replace(".[]", "[]")


def document(seed: str, number: int) -> Odd:
    """Return a document with an odd value, the same one for the same seed and number. Every second one is random."""
    rng = random.Random(f"odd {seed} {number}")
    plain = copy.deepcopy(BASE) if number % 2 == 0 else diff_documents.document(f"odd {seed}", number)
    places = list(paths(plain))
    # few of the places are in features and variants themselves, so each kind of place is equally likely
    kinds: dict[str, list[Path]] = {}
    for path in places:
        kinds.setdefault(Odd(plain, path, "").place(), []).append(path)
    return with_value(plain, rng.choice(kinds[rng.choice(sorted(kinds))]), rng.choice(list(VALUES)))


def with_value(document: Json, path: Path, value: str) -> Odd:
    """Return a document with the named odd value at a path. The document is changed."""
    holder: Any = document
    for each in path[:-1]:
        holder = holder[each]
    if VALUES[value] is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.deepcopy(VALUES[value])
    return Odd(document, path, value)


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value inside features and segments, outer ones first."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        if path or key in ("features", "segments"):
            if path:
                yield (*path, key)
            yield from paths(item, (*path, key))
