"""One of several shapes (import validation 7)."""

from __future__ import annotations

from collections.abc import Iterable

from flagsvc.http.shapes.shape import Anything, Schema, Shape
from flagsvc.http.shapes.violation import Fault, Violation, broken


class Alternatives(Shape):
    """Several shapes, tried in order.

    Each one gets the value as the shapes before it coerced it. The value must also fit `base`.
    """

    keyword = ""

    def __init__(self, *shapes: Shape, base: Shape | None = None, description: str = "", example: object = None) -> None:
        self.shapes = shapes
        self.base = base or Anything()
        self.rule = self.base.rule
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return self.base.coerced(value)

    def schema(self) -> Schema:
        """Return the schema of the base with the list of alternatives."""
        return self.base.schema() | {self.keyword: [shape.described(shape.schema()) for shape in self.shapes]}

    def below(self) -> Iterable[Shape]:
        return (*self.shapes, self.base)


class AnyOf(Alternatives):
    """At least one of several shapes. The first one that fits decides."""

    keyword = "anyOf"

    def examined(self, value: object) -> object:
        """Return the value, coerced by the first alternative that fits.

        Otherwise raise one violation of each alternative and one of all.
        """
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
        """Return the value, coerced by the only alternative that fits.

        Otherwise raise one violation of each alternative and one of all.
        """
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
