"""How a document comes to every worker, in two steps.

It goes to all of them, each makes it ready and says so; when all have said so, or the slowest have had time enough, one short
message to each makes it what is served: they switch within the time that such a message takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from flagsvc.core.log import Logger
from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.slot import Child, Conditions, WorkerSlot


class RolloutDocument(NamedTuple):
    """A document that the workers have; `key` is the object it is served as here."""

    key: object
    number: int
    body: bytes


class DocumentRollout:
    """The documents of all workers. `late_s` is how long the others wait for the slowest, `stuck_s` when that one is replaced."""

    def __init__(
        self, slots: Sequence[WorkerSlot], watch: Conditions, log: Logger, *, late_s: float, stuck_s: float
    ) -> None:
        self._seats = slots
        self._watch = watch
        self._log = log
        self._late_s = late_s
        self._stuck_s = stuck_s
        self._numbers = 0
        self._offers: list[RolloutDocument] = []
        self._current: RolloutDocument | None = None
        self._checked: float | None = None

    @property
    def warm(self) -> bool:
        """Whether there is something to serve."""
        return self._current is not None

    async def prepare(self, key: object, body: bytes) -> None:
        """Have every worker make a document ready; return when all have, or the slowest have had time enough."""
        self._numbers += 1
        offer = RolloutDocument(key, self._numbers, body)
        self._offers = [*self._offers[-say.KEPT + 1 :], offer]
        for slot in self._seats:
            give(slot, offer)
        if await self._all(lambda slot: slot.prepared < offer.number):
            return
        for slot in self._seats:
            if slot.channel is not None and slot.prepared < offer.number:
                self._log.warn("a worker is late with a configuration, the others do not wait", worker=slot.number)
                asyncio.get_running_loop().call_later(self._stuck_s, self._give_up, slot, slot.child, offer.number)

    def switch(self, key: object) -> None:
        """Have every worker serve a document that was prepared; nothing happens where it was not."""
        chosen = [offer for offer in self._offers if offer.key is key]
        if chosen:
            self._current = chosen[-1]
            for slot in self._seats:
                self.bring(slot)

    def confirm(self, moment: float) -> None:
        """Tell every worker when what is served was last current."""
        self._checked = moment
        for slot in self._seats:
            slot.tell(say.Checked(moment))

    def bring(self, slot: WorkerSlot) -> None:
        """Have a worker serve what is served now; one that came after the document was given out gets it first."""
        if self._checked is not None:
            slot.tell(say.Checked(self._checked))
        if self._current is not None:
            if self._current.number not in slot.given:
                give(slot, self._current)
            slot.tell(say.Switch(self._current.number))

    async def settled(self) -> None:
        """Return when every worker serves what was switched to last, but for those that are late."""
        current = self._current
        if current is not None:
            await self._all(lambda slot: slot.switched < current.number)

    async def _all(self, owes: Callable[[WorkerSlot], bool]) -> bool:
        """Return whether no worker owes anything any more, at the latest when the time of the slowest is over."""
        owing = [slot.owing(owes) for slot in self._seats]
        return await self._watch.until(lambda: not any(each() for each in owing), self._late_s)

    def _give_up(self, slot: WorkerSlot, child: Child | None, number: int) -> None:
        """Replace a worker that is still not ready with a document."""
        if slot.child is child and slot.channel is not None and slot.prepared < number:
            self._log.error("a worker does not get ready with a configuration and is replaced", worker=slot.number)
            slot.kill()


def give(slot: WorkerSlot, offer: RolloutDocument) -> None:
    """Send a worker a document to make ready."""
    slot.given = sorted([*slot.given, offer.number])[-say.KEPT :]
    slot.tell(say.Prepare(offer.number), offer.body)
