"""The error for a value that does not fit its shape.

Not compiled: a compiled class must not have an uncompiled base.
"""

from __future__ import annotations

from typing import Final

from flagsvc.core.errors import FlagsvcError
from flagsvc.http.shapes.violation import Detail, Fault, detail, pointer, rule

PREFIX: Final = "request body is not of the shape asked for"


class ShapeError(FlagsvcError):
    """A value does not fit its shape. `faults` has the first violation of `root`, which is at `place`.

    For AnyOf it has one violation of each alternative. The texts are made only when they are needed, because the value may be
    large.
    """

    def __init__(self, faults: list[Fault], place: str, root: object) -> None:
        super().__init__(PREFIX)
        self.faults = faults
        self.place = place
        self.root = root

    @property
    def details(self) -> list[Detail]:
        """The items of an error body of the flag server."""
        return [detail(fault, self.place, self.root) for fault in self.faults]

    @property
    def problem(self) -> tuple[str, str]:
        """The first violation in the form of JSON validators: a JSON pointer and a rule."""
        fault = self.faults[0]
        return pointer(fault, self.place), rule(fault)

    def __str__(self) -> str:
        return f"{PREFIX}: {self.details[0]['message']}"
