"""What every shape is, and the two that wrap another: Nullable and Named (import validation 2; 2.1)."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, Final, TypeAlias

from mypy_extensions import mypyc_attr

from flagsvc.http.shapes.violation import broken

Schema: TypeAlias = dict[str, Any]


class Mismatch:
    """The type of MISMATCH."""


MISMATCH: Final = Mismatch()
"""What `coerced` gives for a value that is not of the type and cannot be made so."""

NO_TYPES: Final[frozenset[type]] = frozenset()


@mypyc_attr(allow_interpreted_subclasses=True)
class Shape:  # no ABC: mypyc gives such classes weak references that outlive what they refer to
    """One row: what a value must look like. Rows do not change once they are made, and any number of threads may read one.

    Each subclass defines `coerced` and `schema`; calling those of this class is a mistake.
    `plain` are the Python types whose every value conforms as it is, so that a container need not look at it again.
    """

    plain: frozenset[type] = NO_TYPES
    rule = ""  # what the message says of a value of another type
    description = ""
    example: object = None

    def coerced(self, value: object) -> object:
        """Return the value as one of this type, MISMATCH where that cannot be."""
        raise NotImplementedError

    def examined(self, value: object) -> object:
        """Return a value of the type when it holds all other rules too, or raise Violation. Parts are coerced in place."""
        return value

    def take(self, value: object) -> object:
        """Return the value, coerced. Raise Violation at the first rule it breaks."""
        taken = self.coerced(value)
        if taken is MISMATCH:
            raise broken(self.rule, value)
        return self.examined(taken)

    def schema(self) -> Schema:
        """Return the JSON Schema of the row without its description; Named shapes below it are references."""
        raise NotImplementedError

    def below(self) -> Iterable[Shape]:
        """Return the shapes directly below this one."""
        return ()

    def described(self, schema: Schema) -> Schema:
        """Return a schema with the description and the example of this row."""
        notes = {"description": self.description} if self.description else {}
        return schema | notes | ({} if self.example is None else {"example": self.example})

    def told(self, description: str, example: object) -> None:
        """Keep what is only for readers."""
        self.description = description
        self.example = example


@mypyc_attr(allow_interpreted_subclasses=True)
class Nullable(Shape):
    """A shape or null. What the shape does not take, null takes: `""`, 0 and false are then null (import validation 2.1)."""

    def __init__(self, inner: Shape, *, description: str = "", example: object = None) -> None:
        self.inner = inner
        self.rule = inner.rule
        self.plain = inner.plain | {NoneType} if inner.plain else NO_TYPES
        self.told(description, example)

    def coerced(self, value: object) -> object:
        """Return null as it is, else what the shape makes of the value, else null where JavaScript sees nothing."""
        if value is None:
            return None
        taken = self.inner.coerced(value)
        nothing = isinstance(value, str | int | float) and not value
        return None if taken is MISMATCH and nothing else taken

    def examined(self, value: object) -> object:
        """Return null, or the value when it holds the shape's rules."""
        return None if value is None else self.inner.examined(value)

    def schema(self) -> Schema:
        """Return the schema with null as a further type."""
        schema = self.inner.described(self.inner.schema())
        if not isinstance(schema.get("type"), str):
            return {"anyOf": [schema, {"type": "null"}]}
        choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return schema | {"type": [schema["type"], "null"]} | choices

    def below(self) -> Iterable[Shape]:
        """Return the shape within."""
        return (self.inner,)


class Named(Shape):
    """A shape with a name of its own: a component of the OpenAPI document, a reference wherever it is used."""

    def __init__(self, name: str, inner: Shape) -> None:
        self.name = name
        self.inner = inner
        self.rule = inner.rule
        self.plain = inner.plain

    def coerced(self, value: object) -> object:
        """Return what the shape within makes of the value."""
        return self.inner.coerced(value)

    def examined(self, value: object) -> object:
        """Return the value when it holds the rules of the shape within."""
        return self.inner.examined(value)

    def schema(self) -> Schema:
        """Return the reference."""
        return {"$ref": f"#/components/schemas/{self.name}"}

    def below(self) -> Iterable[Shape]:
        """Return the shape within."""
        return (self.inner,)


def bare(shape: Shape) -> Shape:
    """Return what a Named shape names, which checks the same with fewer calls."""
    return bare(shape.inner) if isinstance(shape, Named) else shape


@mypyc_attr(allow_interpreted_subclasses=True)
class Anything(Shape):
    """Any JSON value at all, as it is."""

    plain = frozenset({dict, list, str, int, float, bool, NoneType})

    def __init__(self, *, description: str = "", example: object = None) -> None:
        self.told(description, example)

    def coerced(self, value: object) -> object:
        """Return the value."""
        return value

    def schema(self) -> Schema:
        """Return the schema that allows everything."""
        return {}
