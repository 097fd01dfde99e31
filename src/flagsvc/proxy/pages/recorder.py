"""The requests of the last seconds. They are counted anyway, for the metrics; while a page asks, they are read once a second.

When no page has asked for a minute, reading stops and everything is forgotten.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, locate_error
from flagsvc.http.metrics import LIMITS_REACHED, REQUESTS, Readings

SECONDS: Final = 60
"""The seconds that are shown. Reading goes on for as many seconds after the last page."""

ReadCounts = Callable[[], Awaitable[Readings]]
"""Returns the counters of all processes that answer callers."""


class Figures(NamedTuple):
    """Some figures since the start. `unchanged` are answers 304, `unauthorized` 401 and `throttled` 429.

    `failed` are 500 and above. `limits` is how often a limit was reached.
    """

    requests: float = 0.0
    unchanged: float = 0.0
    unauthorized: float = 0.0
    throttled: float = 0.0
    failed: float = 0.0
    hits: float = 0.0
    misses: float = 0.0
    limits: float = 0.0


BY_NAME: Final = {
    "flagsvc_answer_cache_hits": "hits",
    "flagsvc_answer_cache_misses": "misses",
    LIMITS_REACHED: "limits",
}
"""Metric → field of the figures."""
BY_STATUS: Final = {"304": "unchanged", "401": "unauthorized", "429": "throttled"}
"""Status → field of the figures."""


def figures_of(readings: Readings) -> Figures:
    """Return the figures of the readings of every environment."""
    found = dict.fromkeys(Figures._fields, 0.0)
    for key, value in readings.items():
        if key[0] == REQUESTS:
            found["requests"] += value
            field = BY_STATUS.get(key[-1], "failed" if key[-1] >= "500" else "")
        else:
            field = BY_NAME.get(key[0], "")
        if field:
            found[field] += value
    return Figures(**found)


class Sample(NamedTuple):
    """The figures at a moment, in seconds of `Clock.monotonic`."""

    at: float
    figures: Figures


class Recorder:
    """Reads the counters when a page asks, and then once a second until no page has asked for a minute."""

    def __init__(self, read: ReadCounts, clock: Clock, log: Logger) -> None:
        self._read = read
        self._clock = clock
        self._log = log
        self._samples: deque[Sample] = deque(maxlen=SECONDS + 1)
        self._until = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def look(self) -> Readings:
        """Return the counters as they are now, and keep on reading."""
        self._until = self._clock.monotonic() + SECONDS
        found = await self._read()
        if not self.is_running:
            self._samples.append(Sample(self._clock.monotonic(), figures_of(found)))
            self._task = asyncio.create_task(self._run(), name="traffic")
        return found

    async def _run(self) -> None:
        try:
            while self._clock.monotonic() < self._until:
                await self._clock.sleep(1.0)
                self._samples.append(Sample(self._clock.monotonic(), figures_of(await self._read())))
        except Exception as error:  # a page must not fail for it; the next one starts again
            self._log.error("reading the traffic failed", error=locate_error(error))
        finally:
            self._samples.clear()

    def rates(self) -> list[Figures]:
        """Return the figures per second of the last seconds, the newest one last; none before the first second has passed."""
        return list(differences(self._samples))


def differences(samples: Iterable[Sample]) -> Iterable[Figures]:
    """Yield how much the figures grow in a second between two samples."""
    for before, after in pairwise(samples):
        seconds = max(after.at - before.at, 0.001)
        yield Figures(*(max(0.0, new - old) / seconds for old, new in zip(before.figures, after.figures, strict=True)))
