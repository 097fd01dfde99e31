"""One of several shapes (import validation 7)."""

from __future__ import annotations

from collections.abc import Iterable

from flagsvc.http.shapes.shape import Anything, Schema, Shape
from flagsvc.http.shapes.violation import Fault, Violation, broken


class Alternatives(Shape):
    """Several shapes, tried in order; each sees what the ones before it have coerced. `base` is a shape that holds besides."""

    keyword = ""

    def __init__(
        self, *shapes: Shape, base: Shape | None = None, description: str = "", example: object = None
    ) -> None:
        self.shapes = shapes
        self.base = base or Anything()
        self.rule = self.base.rule
        self.told(description, example)

    def coerced(self, value: object) -> object:
        """Return what the base makes of the value."""
        return self.base.coerced(value)

    def schema(self) -> Schema:
        """Return the list of alternatives beside the schema of the base."""
        return self.base.schema() | {self.keyword: [shape.described(shape.schema()) for shape in self.shapes]}

    def below(self) -> Iterable[Shape]:
        """Return the alternatives and the base."""
        return (*self.shapes, self.base)


class AnyOf(Alternatives):
    """At least one of several shapes: the first that fits decides."""

    keyword = "anyOf"

    def examined(self, value: object) -> object:
        """Return the value as the first alternative takes it; else raise one violation of each and one of them all."""
        faults: list[Fault] = []
        for shape in self.shapes:
            try:
                taken = shape.take(value)
            except Violation as error:
                faults += error.faults
                value = value if error.placed else error.value
            else:
                return self.base.examined(taken)
        raise Violation([*faults, *broken("must match a schema in anyOf", value).faults], value)


class OneOf(Alternatives):
    """Exactly one of several shapes."""

    keyword = "oneOf"

    def examined(self, value: object) -> object:
        """Return the value as the only alternative that fits takes it; else raise one violation of each, and one of them all."""
        faults: list[Fault] = []
        fitting = 0
        for shape in self.shapes:
            try:
                value = shape.take(value)
                fitting += 1
            except Violation as error:
                faults += error.faults
                value = value if error.placed else error.value
        if fitting != 1:
            raise Violation([*faults, Fault("one of", "must match exactly one schema in oneOf")], value)
        return self.base.examined(value)
