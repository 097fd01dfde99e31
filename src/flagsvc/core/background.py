"""A loop that lives as long as the proxy: it cannot end unseen, and a fault in it costs one round, not the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from flagsvc.core.backoff import delay_after_failure
from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, in_brief

FIRST_PAUSE_S = 1.0


class SupervisedTask:
    """Runs `body` as a task and starts it again, after a growing pause, whenever it fails. `restarts` counts how often it did.

    It ends where the body returns, and where it is cancelled itself: by `stop`, or by an event loop that ends. A cancellation that
    comes up from something the body waited for was meant for that, not for the loop, and is a fault like any other.
    """

    def __init__(
        self, name: str, body: Callable[[], Awaitable[None]], *, clock: Clock, log: Logger, draw: Callable[[], float]
    ) -> None:
        """Take what to run; `draw` gives random numbers of [0, 1)."""
        self.name = name
        self.restarts = 0
        self._body = body
        self._clock = clock
        self._log = log
        self._draw = draw
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether the loop was started and has neither finished nor been stopped."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start the task; does nothing when it runs already."""
        if not self.running:
            self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Cancel the task and wait until it is gone."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while (error := await self._life()) is not None:
            self.restarts += 1
            self._log.error(f"{self.name} failed and starts again", error=in_brief(error), restarts=self.restarts)
            await self._clock.sleep(delay_after_failure(self.restarts, self._draw(), FIRST_PAUSE_S))

    async def _life(self) -> BaseException | None:
        """Run the body once and return what it failed with; None where it returned, or the task is asked to end."""
        try:
            await self._body()
        except (Exception, asyncio.CancelledError) as error:  # whatever a bug raises: the loop goes on, and says so
            return None if asked_to_end() else error
        return None


def asked_to_end() -> bool:
    """Return whether somebody has cancelled the task that asks."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
