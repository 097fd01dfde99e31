"""Gives the sockets of a worker that has ended to another worker, until its replacement takes connections.

The kernel gives each group of listening sockets its share of new connections, whether a process accepts them or not. They wait in
the queue, which the parent keeps open. So no connection is lost, but some worker must accept them.
"""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.slot import WorkerSlot


class SocketAdoption:
    """The groups of sockets that another worker has adopted. A worker and its own group have the same number."""

    def __init__(self, slots: Sequence[WorkerSlot], groups: int) -> None:
        self._slots = slots
        self._groups = groups
        self._adopters: dict[int, WorkerSlot] = {}

    def reassign(self) -> None:
        """Let serving workers adopt the groups of vacant slots, and return groups whose own worker serves again."""
        for slot in self._slots[: self._groups]:
            adopter = self._adopters.get(slot.number)
            if slot.is_serving and adopter is not None:
                del self._adopters[slot.number]
                adopter.send(messages.Release(slot.number))
            elif slot.is_vacant and not slot.is_serving and (adopter is None or not adopter.is_serving):
                self._adopt(slot.number)

    def _adopt(self, group: int) -> None:
        """Give a group to the serving worker that has adopted the fewest groups."""
        self._adopters.pop(group, None)
        serving = [slot for slot in self._slots if slot.is_serving]
        if serving and self._groups > 1:
            chosen = min(serving, key=lambda slot: sum(adopter is slot for adopter in self._adopters.values()))
            self._adopters[group] = chosen
            chosen.send(messages.Adopt(group))
