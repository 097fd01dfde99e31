"""What callers get for a value that is not of its shape.

Not compiled: a compiled class cannot have a base that is not.
"""

from __future__ import annotations

from typing import Final

from flagsvc.core.errors import FlagsvcError
from flagsvc.http.shapes.violation import Detail, Fault, detail, pointer, rule

PREFIX: Final = "request body is not of the shape asked for"


class ShapeError(FlagsvcError):
    """A value is not of its shape. `faults` has the first violation (AnyOf: one per alternative) of `root`, which is at `place`.

    What they say is put into words where it is asked for: the value that was sent may be large.
    """

    def __init__(self, faults: list[Fault], place: str, root: object) -> None:
        super().__init__(PREFIX)
        self.faults = faults
        self.place = place
        self.root = root

    @property
    def details(self) -> list[Detail]:
        """The items of the flag server's wire."""
        return [detail(fault, self.place, self.root) for fault in self.faults]

    @property
    def problem(self) -> tuple[str, str]:
        """The first violation as validators of JSON tell it: a JSON pointer, and what must hold there."""
        fault = self.faults[0]
        return pointer(fault, self.place), rule(fault)

    def __str__(self) -> str:
        return f"{PREFIX}: {self.details[0]['message']}"
