"""The draws of variants in a list answer, as numbers in one native array. Compiled.

The programs of all classes share them, because a draw does not depend on the class.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.hashing import M32, Identifier, hashed
from flagsvc.engine.run import Run
from flagsvc.engine.variants import VariantChoice

REST: Final = 32
"""The shift of a prefix's rest in a number that has its state, too."""

# the numbers of a draw, by their place: state and rest of its prefix, the size of the prefix, then these, then the limits
TOTAL: Final = 2
SOURCE: Final = 3
FIRST: Final = 4
LIMITS: Final = 5
DEFAULT: Final = "default"
"""The name of default stickiness. A field of this name would mean the same."""


@mypyc_attr(acyclic=True)
class VariantDraws:
    """The draws of one list, of variants without overrides. `pieces` has the bytes to append for each variant.

    `sources` has one choice for each identifier that the draws stick to. `places` tells where the numbers of a choice begin.
    """

    def __init__(self) -> None:
        self.sources: list[VariantChoice] = []
        self.fields: dict[str, int] = {}
        self.places: dict[int, int] = {}
        self.numbers: vec[i64] = vec[i64]()
        self.pieces: list[bytes] = []

    def add(self, choice: VariantChoice, pieces: list[bytes]) -> int:
        """Add a draw, if it is not there, and return the place of its numbers. `pieces` are those of the variants with a weight."""
        place = self.places.get(id(choice))
        if place is not None:
            return place
        place = len(self.numbers)
        self.places[id(choice)] = place
        source = self.source(choice)
        prefix = choice.prefix
        self.add_number(prefix.state | prefix.rest << REST)
        self.add_number(prefix.size)
        self.add_number(choice.total)
        self.add_number(source)
        self.add_number(len(self.pieces))
        for limit in choice.limits:
            self.add_number(limit)
        self.pieces += pieces
        return place

    def source(self, choice: VariantChoice) -> int:
        """Return the place of what a choice sticks to among the sources. The first such choice is added to them."""
        name = DEFAULT if choice.by_default else choice.field
        place = self.fields.get(name)
        if place is None:
            place = len(self.sources)
            self.fields[name] = place
            self.sources.append(choice)
        return place

    def add_number(self, number: i64) -> None:
        self.numbers = append(self.numbers, number)

    def identifiers(self, run: Run) -> list[Identifier | None]:
        """Return the identifier of each source. Raises TypeError if a field is not a text."""
        return [source.identifier(run) for source in self.sources]

    def piece(self, at: i64, identifiers: list[Identifier | None], run: Run) -> bytes:
        """Return the bytes of the variant that is drawn. `at` is the place of the draw in the numbers."""
        numbers = self.numbers
        total = numbers[at + TOTAL]
        identifier = identifiers[numbers[at + SOURCE]]
        if identifier is None:
            target = run.draw(total)
        else:
            prefix = numbers[at]
            target = hashed(identifier, prefix & M32, prefix >> REST, numbers[at + 1]) % total + 1
        # the last limit is the total, so that some limit is always reached
        limit = at + LIMITS
        while numbers[limit] < target:
            limit += 1
        return self.pieces[numbers[at + FIRST] + limit - at - LIMITS]
