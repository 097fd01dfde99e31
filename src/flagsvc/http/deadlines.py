"""Work with a time limit. When the time is over, the caller continues, and the work may go on.

Work that takes too long is cancelled. Python cannot end a task that catches its cancellation and continues. Such a task is counted,
and when there are too many of them, no new work is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

MAX_STUCK = 1000
"""The most tasks that run on after their cancellation, before no new work is started: each keeps its memory."""
CANCEL_S = 1.0
"""Seconds that a cancelled task may take to end."""


class OverdueError(Exception):
    """The work took longer than allowed, and was cancelled."""


class CrowdedError(Exception):
    """No new work may start, because too many cancelled tasks still run."""


class CancelledInsideError(Exception):
    """The work was cancelled, but not by the caller that waits for it."""


class Deadline:
    """Gives each task `seconds`, and counts the tasks that run on after their cancellation.

    It belongs to one event loop at a time. `stuck` is the number of tasks that still run CANCEL_S after their cancellation.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._given_up: dict[asyncio.Task[Any], asyncio.TimerHandle | None] = {}
        self.stuck = 0

    def check(self) -> None:
        """Raise CrowdedError if no new work may start."""
        if self.stuck >= MAX_STUCK:
            raise CrowdedError

    async def wait_for(self, work: Coroutine[Any, Any, T], on_stuck: Callable[[], object]) -> T:
        """Return what the work returns, and raise what it raises. `on_stuck` is called if it runs on after its cancellation.

        Raises OverdueError if it takes too long, and CancelledInsideError if it was cancelled from inside. If the caller
        is cancelled, so is the work.
        """
        task = asyncio.get_running_loop().create_task(work)
        try:
            await asyncio.wait((task,), timeout=self._seconds)
        except asyncio.CancelledError:
            self._give_up(task, on_stuck)
            raise
        if not task.done():
            self._give_up(task, on_stuck)
            raise OverdueError
        if task.cancelled():
            raise CancelledInsideError
        return task.result()

    def _give_up(self, task: asyncio.Task[Any], on_stuck: Callable[[], object]) -> None:
        """Cancel a task, and check later whether it has ended."""
        task.cancel()
        # without this reference the task could be garbage-collected before it has cleaned up
        self._given_up[task] = task.get_loop().call_later(CANCEL_S, self._report_stuck, task, on_stuck)
        task.add_done_callback(self._ended)

    def _report_stuck(self, task: asyncio.Task[Any], on_stuck: Callable[[], object]) -> None:
        """Report a cancelled task that still runs."""
        self._given_up[task] = None
        self.stuck += 1
        on_stuck()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Forget a task that has ended, and ignore its exception."""
        timer = self._given_up.pop(task)
        if timer is None:
            self.stuck -= 1
        else:
            timer.cancel()
        if not task.cancelled():
            task.exception()


async def run_until_gone(work: Awaitable[T], gone: Callable[[], Awaitable[bool]]) -> T | None:
    """Return what the work returns, and raise what it raises. If `gone` returns True before, cancel the work and return None.

    If the caller is cancelled, so is the work. A future stands for work elsewhere, such as in a thread: it is always waited for.
    """
    working = asyncio.ensure_future(work)
    if working is work:
        return await working
    leaving = asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done() and is_gone(leaving):
            return None
        return await working
    finally:
        working.cancel()
        if not leaving.cancel():
            is_gone(leaving)  # retrieve the exception, or the loop logs that it was never retrieved


def is_gone(leaving: asyncio.Future[bool]) -> bool:
    """Return whether the caller is gone. If that cannot be determined, it counts as present."""
    return not leaving.cancelled() and leaving.exception() is None and leaving.result()
