"""The functions that other packages call: check a value, and write shapes as schemas (import validation 2; 3)."""

from __future__ import annotations

from collections.abc import Iterable

from flagsvc.http.shapes.shape import Named, Schema, Shape
from flagsvc.http.shapes.violation import ShapeError, Violation


def check(shape: Shape, value: object, place: str = "/body") -> object:
    """Return a JSON value, coerced to its shape. Arrays and objects are changed in place. `place` is the position of the value.

    Raises ShapeError with the first violation, in the order of the real server (import validation 3).
    """
    try:
        return shape.take(value)
    except Violation as error:
        root = value if error.placed else error.value
        raise ShapeError(error.faults, place, root) from None


def json_schema(shape: Shape) -> Schema:
    """Return the OpenAPI 3.1 schema of a shape. Named shapes, including this one, become references."""
    return shape.described(shape.schema())


def components(shapes: Iterable[Shape]) -> dict[str, Schema]:
    """Return the schema of every Named shape in and below some shapes, by name, sorted.

    Raises ValueError for two shapes of one name.
    """
    found: dict[str, Named] = {}
    gone_through: set[str] = set()
    waiting = list(shapes)
    while waiting:
        shape = waiting.pop()
        if isinstance(shape, Named):
            known = found.setdefault(shape.name, shape)
            if known is shape and shape.name in gone_through:
                continue
            if known is not shape and json_schema(known.inner) != json_schema(shape.inner):
                raise ValueError(f"two shapes are named `{shape.name}`")
            gone_through.add(shape.name)
        waiting += shape.below()
    return {name: json_schema(found[name].inner) for name in sorted(found)}
