"""Background loops that run as long as the process, and how long they wait after a failure.

A failure is logged and the loop is started again. Failures back off with a cap and jitter, and `Retry-After` of an upstream is
obeyed (behaviour: Failures). The caller passes the random number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, describe_error

STEPS = 10
"""A back-off grows to this many intervals. An upstream that refuses the token is asked after half to all of them."""
CEILING_S = 300.0
"""The longest back-off in seconds, unless the interval itself is longer."""
RETRY_AFTER_CEILING_S = 3600.0
"""The most seconds that a Retry-After of the server counts for. The option retryAfterLimit usually sets a lower limit."""
COLD_S = 1.0
"""The first back-off in seconds while there is no configuration to serve."""
COLD_CEILING_S = 5.0
"""The longest back-off in seconds while there is no configuration to serve."""
COLD_RETRY_AFTER_S = 60.0
"""The most seconds that a Retry-After counts for while there is no configuration to serve."""
MAX_DOUBLINGS = 16


def longest_delay(interval: float) -> float:
    """Return the longest back-off, in seconds, of an action that normally happens every `interval` seconds."""
    return max(interval, min(STEPS * interval, CEILING_S))


def delay_after_failure(
    failures: int, jitter: float, interval: float, *, retry_after: float | None = None, ceiling: float | None = None
) -> float:
    """Return the seconds to wait after the `failures`-th failure in a row (counted from 1).

    `jitter` is a random number in [0, 1). `interval` is the normal period in seconds, `retry_after` the server's Retry-After, and
    `ceiling` the longest delay (default `longest_delay(interval)`). The delay doubles with each failure, starting from
    `interval`; the jitter picks a value from its upper half. It is never below `interval`.
    """
    grown = min(interval * 2.0 ** min(failures, MAX_DOUBLINGS), longest_delay(interval) if ceiling is None else ceiling)
    delay = max(interval, grown * (0.5 + jitter / 2))
    if retry_after is None:
        return delay
    return max(delay, min(retry_after, RETRY_AFTER_CEILING_S) + jitter * interval)


def delay_while_refused(jitter: float, interval: float, *, retry_after: float | None = None) -> float:
    """Return the seconds to wait while the upstream refuses the token: near the ceiling from the first refusal on."""
    return delay_after_failure(MAX_DOUBLINGS, jitter, interval, retry_after=retry_after)


def delay_while_cold(
    failures: int, jitter: float, interval: float, *, retry_after: float | None = None, ceiling: float | None = None
) -> float:
    """Return the seconds to wait while there is no configuration to serve: a few at most.

    The delay is short because proxy and upstream may start in either order. A refused token gets the same delay, because the token
    may be created a moment later. The arguments are those of `delay_after_failure`.
    """
    lower_ceiling = min(longest_delay(interval) if ceiling is None else ceiling, COLD_CEILING_S)
    wish = None if retry_after is None else min(retry_after, COLD_RETRY_AFTER_S)
    return delay_after_failure(failures, jitter, min(interval, COLD_S), retry_after=wish, ceiling=lower_ceiling)


FIRST_PAUSE_S = 1.0


class SupervisedTask:
    """Runs `body` as a task and restarts it after a growing pause whenever it fails. `restarts` counts the restarts.

    The task ends when the body returns, or when the task itself is cancelled: by `stop`, or by an event loop that shuts down. A
    cancellation of something that the body awaits does not end the task. It counts as a failure of the body.
    """

    def __init__(
        self, name: str, body: Callable[[], Awaitable[None]], *, clock: Clock, log: Logger, draw: Callable[[], float]
    ) -> None:
        """Take the body to run. `draw` returns random numbers in [0, 1)."""
        self.name = name
        self.restarts = 0
        self._body = body
        self._clock = clock
        self._log = log
        self._draw = draw
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the task was started and has neither finished nor been stopped."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start the task. A task that already runs is left alone."""
        if not self.is_running:
            self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Cancel the task, wait until it has ended, and forget the body. So the object of the body is in no cycle any more."""
        task, self._task = self._task, None
        if task is not None:
            self._body = do_nothing
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while (error := await self._run_once()) is not None:
            self.restarts += 1
            self._log.error(f"{self.name} failed and starts again", error=describe_error(error), restarts=self.restarts)
            await self._clock.sleep(delay_after_failure(self.restarts, self._draw(), FIRST_PAUSE_S))

    async def _run_once(self) -> BaseException | None:
        """Run the body once and return its error; None if it returned, or if the task is being cancelled."""
        try:
            await self._body()
        except (Exception, asyncio.CancelledError) as error:  # a bug may raise any exception; the loop must survive it
            return None if is_being_cancelled() else error
        return None


async def wait_for_first(*awaitables: Awaitable[object]) -> None:
    """Wait until the first of several is done, and cancel the others. Their results and errors do not matter."""
    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def do_nothing() -> None:
    """Do nothing."""


def is_being_cancelled() -> bool:
    """Return whether the current task itself has been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
