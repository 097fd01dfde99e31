"""Finds the pieces of a document that are unchanged since the document before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

NOT_THERE: Final = -1
UNREAD: Final = -2
"""The old pieces must be read first."""
CHANGED_IN_A_ROW: Final = 8
"""The most neighbours that changed in their places and are found without a look-up."""
READ_AT_ONCE: Final = 100
"""Old pieces that are read in one step."""


class Matcher:
    """Finds each piece of a new document in the old document. The pieces are requested in the order of the new document.

    Pieces are bytes; without bytes there are no old ones. Most pieces are at the same place, or next to the last one found.
    Only if some are not, the old pieces are looked up by content.
    """

    def __init__(self, old: list[object], new: list[object]) -> None:
        self.old = old
        self.new = new
        self.at: i64 = 0
        self.places: dict[bytes, int] | None = None

    def find(self, index: int) -> int:
        """Return the index in the old document of the piece at `index` in the new one; NOT_THERE if it is new.

        UNREAD tells that the steps of `read` must come first.
        """
        if not self.old:
            return NOT_THERE
        here = int(self.at)
        if self.is_same(here, index):
            self.at += 1
            return here
        if self.is_same(here + 1, index + 1):
            # changed in its place
            self.at += 1
            return NOT_THERE
        if self.is_same(here + 1, index):
            # the one before is gone
            self.at += 2
            return here + 1
        if self.is_same(here, index + 1):
            # added in between
            return NOT_THERE
        for ahead in range(2, CHANGED_IN_A_ROW + 1):
            if self.is_same(here + ahead, index + ahead):
                # the first of several that changed in their places
                self.at += 1
                return NOT_THERE
        if self.places is None:
            return UNREAD
        return self.find_moved(index)

    def read(self) -> Iterator[int]:
        """Read the old pieces, so that they are found anywhere, and yield the number of each step."""
        places: dict[bytes, int] = {}
        for place, piece in enumerate(self.old):
            places[bytes(piece)] = place  # type: ignore[call-overload]
            if place % READ_AT_ONCE == READ_AT_ONCE - 1:
                yield READ_AT_ONCE
        self.places = places

    def is_same(self, here: int, index: int) -> bool:
        """Return whether a piece of the old document and one of the new exist and are equal."""
        return here < len(self.old) and index < len(self.new) and bool(self.old[here] == self.new[index])

    def find_moved(self, index: int) -> int:
        """Look for a piece anywhere in the old document."""
        assert self.places is not None
        place = self.places.get(bytes(self.new[index]), NOT_THERE)  # type: ignore[call-overload]
        if place != NOT_THERE:
            self.at = place + 1
        return place
