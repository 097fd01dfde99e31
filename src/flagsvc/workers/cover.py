"""Who takes the connections of a worker that is not there, until there is another in its place.

The kernel gives each group of listening sockets its share of new connections, whether a process takes them or not. They wait in
its queue, which the parent keeps open; so nothing is lost, but somebody has to come for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.workers import messages as say
from flagsvc.workers.seat import Seat


class Cover:
    """The groups of sockets that another worker has adopted; worker and group have the same number."""

    def __init__(self, seats: Sequence[Seat], groups: int) -> None:
        self._seats = seats
        self._groups = groups
        self._by: dict[int, Seat] = {}

    def arrange(self) -> None:
        """Have the groups of the fallen adopted by the others, and given back to who is there again."""
        for seat in self._seats[: self._groups]:
            by = self._by.get(seat.number)
            if seat.serving and by is not None:
                del self._by[seat.number]
                by.tell(say.Release(seat.number))
            elif seat.fallen and not seat.serving and (by is None or not by.serving):
                self._adopt(seat.number)

    def _adopt(self, group: int) -> None:
        """Give a group to the worker that has adopted least."""
        self._by.pop(group, None)
        able = [seat for seat in self._seats if seat.serving]
        if able and self._groups > 1:
            chosen = min(able, key=lambda seat: sum(by is seat for by in self._by.values()))
            self._by[group] = chosen
            chosen.tell(say.Adopt(group))
