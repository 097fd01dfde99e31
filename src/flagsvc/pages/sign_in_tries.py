"""The limit on tries to sign in at pages (decision 0032). Only wrong tries count.

Each network has a limit, and all of them together have one, so that guesses from many addresses are slow, too. That one
refuses no network without recent wrong tries: it must not lock out everybody else.
"""

from __future__ import annotations

from math import ceil
from threading import Lock
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.http.reached_limits import SIGN_IN, Reached
from flagsvc.http.token_buckets import TokenBuckets, network_of

NETWORK_TRIES: Final = 10
ALL_TRIES: Final = 300
"""The most wrong tries in a minute: of one network, and of all."""
MINUTE_S: Final = 60.0
MAX_NETWORKS: Final = 8192
ALL: Final = b"all"


class SignInTries:
    """The tries that are left. It is safe to call from any thread."""

    def __init__(self, clock: Clock, reached: Reached) -> None:
        self._clock = clock
        self._reached = reached
        self._lock = Lock()
        self._networks = TokenBuckets(NETWORK_TRIES / MINUTE_S, float(NETWORK_TRIES), MAX_NETWORKS)
        self._together = TokenBuckets(ALL_TRIES / MINUTE_S, float(ALL_TRIES), 1)

    def take(self, address: str | None) -> int:
        """Count a try from an address, None for none. Returns 0, or the seconds until another try is allowed.

        A try counts before it is known whether it is right, so that many at once do not pass; `give_back` is for a right one.
        """
        with self._lock:
            seconds = self._take(None if address is None else network_of(address), self._clock.monotonic())
        if seconds > 0.0:
            self._reached.add(SIGN_IN)
        return ceil(seconds)

    def _take(self, network: bytes | None, now: float) -> float:
        """Take a token of a network, and one of all. What all refuse costs the network nothing. The caller holds the lock."""
        if network is None:
            return self._together.take_token(ALL, now)
        is_new = self._networks.is_full(network, now)
        if seconds := self._networks.take_token(network, now):
            return seconds
        seconds = self._together.take_token(ALL, now)
        if seconds == 0.0 or is_new:
            return 0.0
        self._networks.give_back(network)
        return seconds

    def give_back(self, address: str | None) -> None:
        """Forget a try that was right."""
        with self._lock:
            if address is not None:
                self._networks.give_back(network_of(address))
            self._together.give_back(ALL)


def describe_wait(seconds: int) -> str:
    """Return a sentence about how long to wait."""
    return f"There were too many wrong tries to sign in. Try again in {seconds} second{'' if seconds == 1 else 's'}."
