"""How a document comes to every worker, in two steps.

It goes to all of them, each makes it ready and says so; when all have said so, or the slowest have had time enough, one short
message to each makes it what is served: they switch within the time that such a message takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from flagsvc.log import Logger
from flagsvc.workers import messages as say
from flagsvc.workers.seat import Child, Seat, Watch


class Offer(NamedTuple):
    """A document that the workers have; `key` is the object it is served as here."""

    key: object
    number: int
    body: bytes


class Rollout:
    """The documents of all workers. `late_s` is how long the others wait for the slowest, `stuck_s` when that one is replaced."""

    def __init__(self, seats: Sequence[Seat], watch: Watch, log: Logger, *, late_s: float, stuck_s: float) -> None:
        self._seats = seats
        self._watch = watch
        self._log = log
        self._late_s = late_s
        self._stuck_s = stuck_s
        self._numbers = 0
        self._offers: list[Offer] = []
        self._current: Offer | None = None
        self._checked: float | None = None

    @property
    def warm(self) -> bool:
        """Whether there is something to serve."""
        return self._current is not None

    async def prepare(self, key: object, body: bytes) -> None:
        """Have every worker make a document ready; return when all have, or the slowest have had time enough."""
        self._numbers += 1
        offer = Offer(key, self._numbers, body)
        self._offers = [*self._offers[-say.KEPT + 1 :], offer]
        for seat in self._seats:
            give(seat, offer)
        if await self._all(lambda seat: seat.prepared < offer.number):
            return
        for seat in self._seats:
            if seat.channel is not None and seat.prepared < offer.number:
                self._log.warn("a worker is late with a configuration, the others do not wait", worker=seat.number)
                asyncio.get_running_loop().call_later(self._stuck_s, self._give_up, seat, seat.child, offer.number)

    def switch(self, key: object) -> None:
        """Have every worker serve a document that was prepared; nothing happens where it was not."""
        chosen = [offer for offer in self._offers if offer.key is key]
        if chosen:
            self._current = chosen[-1]
            for seat in self._seats:
                self.bring(seat)

    def confirm(self, moment: float) -> None:
        """Tell every worker when what is served was last current."""
        self._checked = moment
        for seat in self._seats:
            seat.tell(say.Checked(moment))

    def bring(self, seat: Seat) -> None:
        """Have a worker serve what is served now; one that came after the document was given out gets it first."""
        if self._checked is not None:
            seat.tell(say.Checked(self._checked))
        if self._current is not None:
            if self._current.number not in seat.given:
                give(seat, self._current)
            seat.tell(say.Switch(self._current.number))

    async def settled(self) -> None:
        """Return when every worker serves what was switched to last, but for those that are late."""
        current = self._current
        if current is not None:
            await self._all(lambda seat: seat.switched < current.number)

    async def _all(self, owes: Callable[[Seat], bool]) -> bool:
        """Return whether no worker owes anything any more, at the latest when the time of the slowest is over."""
        owing = [seat.owing(owes) for seat in self._seats]
        return await self._watch.until(lambda: not any(each() for each in owing), self._late_s)

    def _give_up(self, seat: Seat, child: Child | None, number: int) -> None:
        """Replace a worker that is still not ready with a document."""
        if seat.child is child and seat.channel is not None and seat.prepared < number:
            self._log.error("a worker does not get ready with a configuration and is replaced", worker=seat.number)
            seat.kill()


def give(seat: Seat, offer: Offer) -> None:
    """Send a worker a document to make ready."""
    seat.given = sorted([*seat.given, offer.number])[-say.KEPT :]
    seat.tell(say.Prepare(offer.number), offer.body)
