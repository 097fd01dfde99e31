"""Background loops that run as long as the process. A failure is logged and the loop is started again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from flagsvc.core.backoff import delay_after_failure
from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, describe_error

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
