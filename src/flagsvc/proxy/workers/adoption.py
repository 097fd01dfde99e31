"""Who takes the connections of a worker that is not there, until there is another in its place.

The kernel gives each group of listening sockets its share of new connections, whether a process takes them or not. They wait in
its queue, which the parent keeps open; so nothing is lost, but somebody has to come for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.slot import WorkerSlot


class SocketAdoption:
    """The groups of sockets that another worker has adopted; worker and group have the same number."""

    def __init__(self, slots: Sequence[WorkerSlot], groups: int) -> None:
        self._seats = slots
        self._groups = groups
        self._by: dict[int, WorkerSlot] = {}

    def arrange(self) -> None:
        """Have the groups of the fallen adopted by the others, and given back to who is there again."""
        for slot in self._seats[: self._groups]:
            by = self._by.get(slot.number)
            if slot.serving and by is not None:
                del self._by[slot.number]
                by.tell(say.Release(slot.number))
            elif slot.fallen and not slot.serving and (by is None or not by.serving):
                self._adopt(slot.number)

    def _adopt(self, group: int) -> None:
        """Give a group to the worker that has adopted least."""
        self._by.pop(group, None)
        able = [slot for slot in self._seats if slot.serving]
        if able and self._groups > 1:
            chosen = min(able, key=lambda slot: sum(by is slot for by in self._by.values()))
            self._by[group] = chosen
            chosen.tell(say.Adopt(group))
