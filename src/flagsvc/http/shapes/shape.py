"""The base class of shapes, and the shapes that wrap another: Nullable, OrNull and Named (import validation 2; 2.1)."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, Final, TypeAlias

from mypy_extensions import mypyc_attr

from flagsvc.http.shapes.violation import Violation, broken

Schema: TypeAlias = dict[str, Any]


class Mismatch:
    """The type of MISMATCH."""


MISMATCH: Final = Mismatch()
"""The result of `coerced` for a value that has another type and cannot be coerced."""

NO_TYPES: Final[frozenset[type]] = frozenset()


@mypyc_attr(allow_interpreted_subclasses=True)
class Shape:  # no ABC: mypyc gives such classes weak references that outlive what they refer to
    """One row: the rules for a value. Rows do not change after they are made, and threads may share them.

    Each subclass defines `coerced` and `schema`; those of this class must not be called. `plain` has the Python types whose
    values all conform, so that a container can skip them.
    """

    plain: frozenset[type] = NO_TYPES
    rule = ""  # what the message says of a value of another type
    description = ""
    example: object = None

    def coerced(self, value: object) -> object:
        """Return the value, coerced to the type; MISMATCH if it cannot be coerced."""
        raise NotImplementedError

    def examined(self, value: object) -> object:
        """Return a value of the type if it keeps all other rules. Otherwise raise Violation. Parts are coerced in place."""
        return value

    def take(self, value: object) -> object:
        """Return the value, coerced. Raises Violation for the first rule that it breaks."""
        taken = self.coerced(value)
        if taken is MISMATCH:
            raise broken(self.rule, value)
        return self.examined(taken)

    def schema(self) -> Schema:
        """Return the JSON Schema of the row without its description. Named shapes below it become references."""
        raise NotImplementedError

    def below(self) -> Iterable[Shape]:
        return ()

    def described(self, schema: Schema) -> Schema:
        """Return a schema with the description and the example of this row."""
        notes = {"description": self.description} if self.description else {}
        return schema | notes | ({} if self.example is None else {"example": self.example})

    def told(self, description: str, example: object) -> None:
        """Keep the description and the example, which only readers use."""
        self.description = description
        self.example = example


@mypyc_attr(allow_interpreted_subclasses=True)
class Nullable(Shape):
    """A shape or null. If the shape does not accept `""`, 0 or false, they become null (import validation 2.1)."""

    def __init__(self, inner: Shape, *, description: str = "", example: object = None) -> None:
        self.inner = inner
        self.rule = inner.rule
        self.plain = inner.plain | {NoneType} if inner.plain else NO_TYPES
        self.told(description, example)

    def coerced(self, value: object) -> object:
        """Return null, or the value coerced by the shape. If the shape refuses a value that is false in JavaScript, return null."""
        if value is None:
            return None
        taken = self.inner.coerced(value)
        nothing = isinstance(value, str | int | float) and not value
        return None if taken is MISMATCH and nothing else taken

    def examined(self, value: object) -> object:
        """Return null, or the value if it keeps the shape's rules."""
        return None if value is None else self.inner.examined(value)

    def schema(self) -> Schema:
        """Return the schema with null as a further type."""
        schema = self.inner.described(self.inner.schema())
        if not isinstance(schema.get("type"), str):
            return {"anyOf": [schema, {"type": "null"}]}
        choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return schema | {"type": [schema["type"], "null"]} | choices

    def below(self) -> Iterable[Shape]:
        return (self.inner,)


class OrNull(Shape):
    """A shape, or null in the place of any value that does not conform. So a bad part costs only itself."""

    def __init__(self, inner: Shape) -> None:
        self.inner = inner
        self.plain = inner.plain

    def coerced(self, value: object) -> object:
        try:
            return self.inner.take(value)
        except Violation:
            return None

    def schema(self) -> Schema:
        """Return the schema of the shape, which names what is expected."""
        return self.inner.described(self.inner.schema())

    def below(self) -> Iterable[Shape]:
        return (self.inner,)


class Named(Shape):
    """A shape with a name. It is a component of the OpenAPI document, and every use is a reference."""

    def __init__(self, name: str, inner: Shape) -> None:
        self.name = name
        self.inner = inner
        self.rule = inner.rule
        self.plain = inner.plain

    def coerced(self, value: object) -> object:
        return self.inner.coerced(value)

    def examined(self, value: object) -> object:
        """Return the value if it keeps the rules of the inner shape."""
        return self.inner.examined(value)

    def schema(self) -> Schema:
        return {"$ref": f"#/components/schemas/{self.name}"}

    def below(self) -> Iterable[Shape]:
        return (self.inner,)


def bare(shape: Shape) -> Shape:
    """Return the inner shape of a Named shape, which checks the same with fewer calls."""
    return bare(shape.inner) if isinstance(shape, Named) else shape


@mypyc_attr(allow_interpreted_subclasses=True)
class Anything(Shape):
    """Any JSON value."""

    plain = frozenset({dict, list, str, int, float, bool, NoneType})

    def __init__(self, *, description: str = "", example: object = None) -> None:
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return value

    def schema(self) -> Schema:
        """Return the schema that allows everything."""
        return {}
