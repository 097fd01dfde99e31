"""A clock that stands still until a test advances it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

TURNS = 50
"""How many turns of the event loop `advance` runs after it wakes a sleeper."""


@dataclass
class Sleeper:
    """A task that sleeps until a moment of the clock."""

    until: float
    seconds: float
    woken: asyncio.Future[None]


class FakeClock:
    """A `flagsvc.core.clock.Clock` for tests: nothing waits for real, and time passes only in `advance`.

    The clock does not wake code that waits for a thread or a socket. A test must wait for such code itself.
    """

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        """Take the first time of the clock, in seconds since the epoch."""
        self._began = now
        self._elapsed = 0.0
        self._sleepers: list[Sleeper] = []
        self._asked: asyncio.Queue[float] = asyncio.Queue()

    @property
    def sleeping(self) -> list[float]:
        """The seconds that each sleeper asked for, in the order they fell asleep."""
        return [sleeper.seconds for sleeper in self._sleepers]

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._began + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds by which the clock was advanced."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by `seconds`."""
        sleeper = Sleeper(self._elapsed + seconds, seconds, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        self._asked.put_nowait(seconds)
        try:
            await sleeper.woken
        finally:
            self._sleepers.remove(sleeper)

    async def next_sleep(self) -> float:
        """Wait for the next call of `sleep` and return its seconds. Each call is returned once."""
        return await self._asked.get()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Sleepers whose time has come wake up one after the other, each at its own time."""
        end = self._elapsed + seconds
        while due := [sleeper for sleeper in self._sleepers if sleeper.until <= end and not sleeper.woken.done()]:
            first = min(due, key=lambda sleeper: sleeper.until)
            self._elapsed = max(self._elapsed, first.until)
            first.woken.set_result(None)
            await turns()
        self._elapsed = end
        await turns()


async def turns() -> None:
    """Run the event loop for some turns, so that tasks run as far as they can without a thread, a socket or a clock."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
