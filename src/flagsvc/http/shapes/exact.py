"""Shapes of what people write into files: a value is taken as it stands, and every problem is told at once.

    PEOPLE = List(Entry({"name": Exact("a text", is_text, {"type": "string"})}, required=("name",)))
    [told(fault) for fault in problems(PEOPLE, [{}, {"name": 5}])]        # "[0].name: is missing", "[1].name: expected a text"

A missing or unknown key is a fault of the object that it belongs to; `place_of` writes the way to a fault.
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
    """A value for which `fits` holds, as it stands. `rule` is what is said of any other, `known` its JSON Schema."""

    def __init__(self, rule: str, fits: Callable[[object], bool], known: Schema) -> None:
        self.rule = rule
        self.fits = fits
        self.known = known

    def coerced(self, value: object) -> object:
        """Return the value as it is."""
        return value if self.fits(value) else MISMATCH

    def schema(self) -> Schema:
        """Return the schema."""
        return self.known


@mypyc_attr(allow_interpreted_subclasses=True)
class Exact(Fitting):
    """What `expected` says in words."""

    def __init__(self, expected: str, fits: Callable[[object], bool], known: Schema) -> None:
        super().__init__(f"expected {expected}", fits, known)


class Choice(Exact):
    """One of some words."""

    def __init__(self, *words: str) -> None:
        super().__init__(f"one of {', '.join(words)}", lambda value: value in words, {"enum": list(words)})


class List(Array):
    """A list."""

    rule = "expected a list"


class Entry(Object):
    """An object that has no keys but its properties. Null is as good as no value."""

    rule = "expected an object"

    def __init__(self, properties: dict[str, Shape], *, required: tuple[str, ...] = ()) -> None:
        super().__init__(properties, required=required, closed=True)

    def examined(self, value: object) -> object:
        """Return an object that has no problems; else raise Violation with the first one."""
        for fault in problems(self, value):
            raise Violation([fault], value)
        return value

    def schema(self) -> Schema:
        """Return the schema."""
        schema = super().schema()
        for name in self.names - set(self.required):
            schema["properties"][name] = Nullable(self.properties[name]).schema()
        return schema


def problems(shape: Shape, value: object) -> Iterator[Fault]:
    """Give every fault of a value and of all below it."""
    if isinstance(shape, Entry) and isinstance(value, dict):
        yield from problems_of_entry(shape, value)
    elif isinstance(shape, List) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from below(index, problems(shape.items, item))
    else:
        yield from faults_of(shape, value)


def faults_of(shape: Shape, value: object) -> list[Fault]:
    """Return the faults that end the check of a value. No generator: a compiled one that is left in an `except` leaks the error."""
    try:
        shape.take(value)
    except Violation as violation:
        return violation.faults
    return []


def problems_of_entry(shape: Entry, value: dict[Any, object]) -> Iterator[Fault]:
    """Give the faults of an object: first those of its properties, in their order, then the keys that it should not have.

    In YAML a key need not be a text.
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


def below(key: str | int, faults: Iterator[Fault]) -> Iterator[Fault]:
    """Give faults with one more step on the way to each."""
    for fault in faults:
        fault.keys.append(key)
        yield fault


def place_of(fault: Fault) -> str:
    """Return the way to a fault as people write it: `features[0].name`."""
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in reversed(fault.keys))
    return "".join(steps).removeprefix(".")
