"""Arrays and objects. No other value is coerced to them, and members are checked depth first (import validation 2.1; 3).

Members are coerced in place. A container skips members whose Python type alone shows that they conform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mypy_extensions import mypyc_attr

from flagsvc.http.shapes.shape import MISMATCH, Anything, Schema, Shape, bare
from flagsvc.http.shapes.text import keys_in_order, number_text
from flagsvc.http.shapes.violation import Fault, Violation, broken

RECORD_ORDER: Final = ("type", "properties", "required", "additionalProperties")


def take_member(holder: Any, key: Any, shape: Shape) -> None:
    """Check one member of an array or object. A coerced value replaces it."""
    value = holder[key]
    try:
        taken = shape.take(value)
    except Violation as error:
        if not error.placed:
            holder[key] = error.value
        error.under(key)
        raise
    if taken is not value:
        holder[key] = taken


@mypyc_attr(allow_interpreted_subclasses=True)
class Array(Shape):
    """A list of values of one shape; of any values without a shape."""

    rule = "must be array"

    def __init__(
        self,
        items: Shape | None = None,
        *,
        min_items: int = 0,
        max_items: int | None = None,
        description: str = "",
        example: object = None,
    ) -> None:
        self.items = items or Anything()
        self.bare_items = bare(self.items)
        self.told_items = items is not None
        self.min_items = min_items
        self.max_items = max_items
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return value if isinstance(value, list) else MISMATCH

    def examined(self, value: object) -> object:
        """Return the list if its length and all items conform."""
        held: list[object] = value  # type: ignore[assignment]
        if self.max_items is not None and len(held) > self.max_items:
            raise broken(f"must NOT have more than {number_text(self.max_items)} items", value)
        if len(held) < self.min_items:
            raise broken(f"must NOT have fewer than {number_text(self.min_items)} items", value)
        plain = self.items.plain
        if not plain or not plain.issuperset(map(type, held)):
            self.take_items(held, plain)
        return value

    def take_items(self, held: list[object], plain: frozenset[type]) -> None:
        """Check the items in order."""
        items = self.bare_items
        for index, item in enumerate(held):
            if type(item) not in plain:
                take_member(held, index, items)

    def schema(self) -> Schema:
        bounds = {"minItems": self.min_items or None, "maxItems": self.max_items}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        items = {"items": self.items.described(self.items.schema())} if self.told_items else {}
        return {"type": "array", **items, **given}

    def below(self) -> Iterable[Shape]:
        return (self.items,)


@mypyc_attr(allow_interpreted_subclasses=True)
class Object(Shape):
    """A record. Properties are checked in their order, and missing ones are reported in the order of `required`.

    Other properties are refused if `closed`, must have the shape `rest` if it is given, and are otherwise left alone.
    """

    rule = "must be object"

    def __init__(
        self,
        properties: Mapping[str, Shape] | None = None,
        *,
        required: Sequence[str] = (),
        closed: bool = False,
        rest: Shape | None = None,
        description: str = "",
        example: object = None,
    ) -> None:
        self.properties = dict(properties or {})
        self.required = tuple(required)
        self.closed = closed
        self.rest = rest
        self.rows = tuple((name, shape.plain, bare(shape)) for name, shape in self.properties.items())
        self.names = frozenset(self.properties)
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return value if isinstance(value, dict) else MISMATCH

    def examined(self, value: object) -> object:
        """Return the record if no property is missing, none is extra, and all conform."""
        held: dict[str, object] = value  # type: ignore[assignment]
        for name in self.required:
            if name not in held:
                raise Violation([Fault("missing", name)], value)
        if (self.closed or self.rest) and not held.keys() <= self.names:
            self.take_rest(held)
        for name, plain, shape in self.rows:
            if name in held and type(held[name]) not in plain:
                take_member(held, name, shape)
        return value

    def take_rest(self, held: dict[str, object]) -> None:
        """Check the properties that have no row: they are refused, or must have the shape `rest`."""
        rest = self.rest
        if rest and not self.names and rest.plain.issuperset(map(type, held.values())):
            return
        for name in keys_in_order(held):
            if name in self.names:
                continue
            if rest is None:
                raise Violation([Fault("extra", name)], held)
            take_member(held, name, rest)

    def schema(self) -> Schema:
        schema: Schema = {"type": "object"}
        if self.required:
            schema["required"] = list(self.required)
        if self.closed:
            schema["additionalProperties"] = False
        elif self.rest:
            schema["additionalProperties"] = self.rest.described(self.rest.schema())
        if self.properties:
            schema["properties"] = {name: shape.described(shape.schema()) for name, shape in self.properties.items()}
        return schema

    def below(self) -> Iterable[Shape]:
        return (*self.properties.values(), *([self.rest] if self.rest else []))


@mypyc_attr(allow_interpreted_subclasses=True)
class Record(Object):
    """An object whose schema lists `properties` before `required`.

    Published documents have this order, and their entity tags depend on it.
    """

    def schema(self) -> Schema:
        schema = super().schema()
        return {name: schema[name] for name in RECORD_ORDER if name in schema}


@mypyc_attr(allow_interpreted_subclasses=True)
class Map(Object):
    """A record of any keys. All values have one shape."""

    def __init__(self, values: Shape, *, description: str = "", example: object = None) -> None:
        super().__init__(rest=values, description=description, example=example)


class Members(Map):
    """A record of any keys. All values have one shape, and are checked in the order of the document."""

    def __init__(self, values: Shape, *, description: str = "", example: object = None) -> None:
        super().__init__(values, description=description, example=example)
        self.member = bare(values)

    def take_rest(self, held: dict[str, object]) -> None:
        member = self.member
        for name, value in held.items():
            if type(value) not in member.plain:
                take_member(held, name, member)
