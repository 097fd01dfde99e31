"""Shapes of files that people write. Values are not coerced, and all problems are reported together.

    PEOPLE = List(Entry({"name": Exact("a text", is_text, {"type": "string"})}, required=("name",)))
    [told(fault) for fault in problems(PEOPLE, [{}, {"name": 5}])]        # "[0].name: is missing", "[1].name: expected a text"

A missing or unknown key is a fault of the object that has or lacks it. `place_of` writes the path to a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mypy_extensions import mypyc_attr

from flagsvc.http.shapes.containers import Array, Object
from flagsvc.http.shapes.shape import MISMATCH, Nullable, Schema, Shape
from flagsvc.http.shapes.violation import Fault, Violation


@mypyc_attr(allow_interpreted_subclasses=True)
class Fitting(Shape):
    """A value for which `fits` returns true. `rule` is the message for any other value, `known` the JSON Schema."""

    def __init__(self, rule: str, fits: Callable[[object], bool], known: Schema) -> None:
        self.rule = rule
        self.fits = fits
        self.known = known

    def coerced(self, value: object) -> object:
        return value if self.fits(value) else MISMATCH

    def schema(self) -> Schema:
        return self.known


@mypyc_attr(allow_interpreted_subclasses=True)
class Exact(Fitting):
    """A value that `expected` describes in words."""

    def __init__(self, expected: str, fits: Callable[[object], bool], known: Schema) -> None:
        super().__init__(f"expected {expected}", fits, known)


class Choice(Exact):
    """One of several words."""

    def __init__(self, *words: str) -> None:
        super().__init__(f"one of {', '.join(words)}", lambda value: value in words, {"enum": list(words)})


class List(Array):
    """A list."""

    rule = "expected a list"


class Entry(Object):
    """An object with no other keys than its properties. Null counts as missing."""

    rule = "expected an object"

    def __init__(self, properties: dict[str, Shape], *, required: tuple[str, ...] = ()) -> None:
        super().__init__(properties, required=required, closed=True)

    def examined(self, value: object) -> object:
        """Return an object without problems. Otherwise raise Violation with the first one."""
        for fault in problems(self, value):
            raise Violation([fault], value)
        return value

    def schema(self) -> Schema:
        schema = super().schema()
        for name in self.names - set(self.required):
            schema["properties"][name] = Nullable(self.properties[name]).schema()
        return schema


def problems(shape: Shape, value: object) -> Iterator[Fault]:
    """Yield every fault of a value and of its members."""
    if isinstance(shape, Entry) and isinstance(value, dict):
        yield from problems_of_entry(shape, value)
    elif isinstance(shape, List) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from below(index, problems(shape.items, item))
    else:
        yield from faults_of(shape, value)


def faults_of(shape: Shape, value: object) -> list[Fault]:
    """Return the faults that end the check of a value.

    Not a generator: a compiled one that is left inside an `except` leaks the error.
    """
    try:
        shape.take(value)
    except Violation as violation:
        return violation.faults
    return []


def problems_of_entry(shape: Entry, value: dict[Any, object]) -> Iterator[Fault]:
    """Yield the faults of an object: first of its properties, in their order, then of its unknown keys.

    In YAML a key may be something other than a text.
    """
    for name, each in shape.properties.items():
        held = value.get(name)
        if held is not None:
            yield from below(name, problems(each, held))
        elif name in shape.required:
            yield Fault("missing", name)
    for key in value:
        if key not in shape.properties:
            yield Fault("extra", str(key), tuple(shape.properties))


def without_nulls(shape: Shape, value: object) -> object:
    """Return a value that has no faults without those members of its entries that are null, because they count as missing."""
    if isinstance(shape, Entry) and isinstance(value, dict):
        return {name: without_nulls(shape.properties[name], held) for name, held in value.items() if held is not None}
    if isinstance(shape, List) and isinstance(value, list):
        return [without_nulls(shape.items, item) for item in value]
    return value


def below(key: str | int, faults: Iterator[Fault]) -> Iterator[Fault]:
    """Yield faults with one more step in their path."""
    for fault in faults:
        fault.keys.append(key)
        yield fault


def place_of(fault: Fault) -> str:
    """Return the path to a fault in the form that people write: `features[0].name`."""
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in reversed(fault.keys))
    return "".join(steps).removeprefix(".")
