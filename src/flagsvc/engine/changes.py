"""Finds the pieces of a document that are unchanged since the document before."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

NOT_THERE: Final = -1


class Matcher:
    """Finds each piece of a new document among those of the old one. The pieces are requested in the order of the new document.

    Pieces are bytes; without bytes there are no old ones. Most pieces are at the same place, or next to the last one found.
    Only if some are not, the old pieces are looked up by content.
    """

    def __init__(self, old: list[object], new: list[object]) -> None:
        self.old = old
        self.new = new
        self.at: i64 = 0
        self.places: dict[bytes, int] | None = None

    def find(self, index: int) -> int:
        """Return the index in the old document of the piece at `index` in the new one; NOT_THERE if it is new."""
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
        return self.find_moved(index)

    def is_same(self, here: int, index: int) -> bool:
        """Return whether a piece of the old document and one of the new exist and are equal."""
        return here < len(self.old) and index < len(self.new) and bool(self.old[here] == self.new[index])

    def find_moved(self, index: int) -> int:
        """Look for a piece anywhere in the old document."""
        if self.places is None:
            self.places = {bytes(piece): place for place, piece in enumerate(self.old)}  # type: ignore[call-overload]
        place = self.places.get(bytes(self.new[index]), NOT_THERE)  # type: ignore[call-overload]
        if place != NOT_THERE:
            self.at = place + 1
        return place
