"""What tokens of callers may cost: requests to upstreams, and places to wait (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flagsvc.core.clock import Clock
from flagsvc.core.errors import FlagsvcError

MAX_WAITING = 1000
"""The most tokens that wait for an answer, and the most requests that wait for them. Further ones are turned away for a moment."""
LEFT_FREE = 5
"""How many places a network leaves free for each further place that it takes, up to the half of all."""
WAIT_S = 5.0
"""Seconds that a request waits for the answer about its tokens."""
RETRY_S = 1.0
"""Seconds after which one that is turned away may try again."""


def answer_deadline() -> float:
    """Return the moment of the running event loop until which a request waits that comes now."""
    return asyncio.get_running_loop().time() + WAIT_S


class UnavailableError(FlagsvcError):
    """A token cannot be looked up now. `seconds` is when to try again."""

    def __init__(self, seconds: float) -> None:
        super().__init__("the token cannot be looked up now")
        self.seconds = seconds


class Budget:
    """The requests about tokens that one process may send, to all upstreams together.

    They are `rate` a second, and as many at once as one second allows. `sent` counts those that were sent. `draw` returns random
    numbers in [0, 1).
    """

    def __init__(self, rate: float, clock: Clock, draw: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._draw = draw
        self._left = rate
        self._at = clock.monotonic()
        self.sent = 0

    async def take(self) -> None:
        """Wait until the next request is allowed.

        A part of the wait is random. Otherwise a caller that tries again every second would always find the same state: the places
        that the request before has freed are taken again.
        """
        now = self._clock.monotonic()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate) - 1.0
        self._at = now
        if self._left < 0.0:
            await self._clock.sleep((self._draw() - self._left) / self._rate)


class Places:
    """How many of something wait, in all and of each network. An empty network has no share of its own, only a part of all.

    The more places a network has, the more it leaves free for others. So it can use half of all while no other network does, and a
    caller with a single token gets in beside any number of callers with many.
    """

    def __init__(self) -> None:
        self.taken = 0
        self._networks: dict[bytes, int] = {}

    def check(self, network: bytes, number: int) -> None:
        """Raise UnavailableError if there are too few places. One who needs none is never turned away."""
        further = self._networks.get(network, 0) + number - 1
        left_free = min(LEFT_FREE * further, MAX_WAITING // 2)
        if number and self.taken + number + left_free > MAX_WAITING:
            raise UnavailableError(RETRY_S)

    def take(self, network: bytes, number: int) -> None:
        """Take places. Raises UnavailableError if there are too few, and takes none then."""
        self.check(network, number)
        self.taken += number
        if network:
            self._networks[network] = self._networks.get(network, 0) + number

    def give_back(self, network: bytes, number: int) -> None:
        """Give places back."""
        self.taken -= number
        left = self._networks.pop(network, number) - number
        if left:
            self._networks[network] = left

    @contextmanager
    def hold(self, network: bytes) -> Iterator[None]:
        """Hold one place while the block runs. Raises UnavailableError if there is none."""
        self.take(network, 1)
        try:
            yield
        finally:
            self.give_back(network, 1)


class WaitingPlaces:
    """The places of one process: of tokens that wait, and of the requests that wait for them."""

    def __init__(self) -> None:
        self.tokens = Places()
        self.requests = Places()
