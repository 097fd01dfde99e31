"""Work that gets so much time and no more: whoever waits for it goes on then, whatever the work does about it.

Work that is given up is cancelled. Python cannot end work that catches that and goes on: it is left to itself, counted, and from
so many pieces of it on no more work is begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

MOST_STUBBORN = 1000
"""Pieces of work that go on although they were given up, before no more work is begun: each keeps what it holds."""
PATIENCE_S = 1.0
"""Seconds that work which was given up may take to end well."""


class OverdueError(Exception):
    """The work took longer than it may, and was given up."""


class CrowdedError(Exception):
    """No more work may begin: too much of what was given up before goes on."""


class CancelledInsideError(Exception):
    """The work was cancelled, and not by whoever waits for it."""


class Deadline:
    """Gives each piece of work `seconds`, and remembers what goes on although it was given up.

    Belongs to one event loop at a time. `stubborn` is the number of pieces that go on after PATIENCE_S.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left: dict[asyncio.Task[Any], asyncio.TimerHandle | None] = {}
        self.stubborn = 0

    def check(self) -> None:
        """Raise CrowdedError where no more work may begin."""
        if self.stubborn >= MOST_STUBBORN:
            raise CrowdedError

    async def wait_for(self, work: Coroutine[Any, Any, T], tell: Callable[[], object]) -> T:
        """Return what the work returns, and raise what it raises; `tell` is called where it goes on although it was given up.

        Raises OverdueError when it takes too long, CancelledInsideError when it was cancelled from inside. When whoever waits is
        cancelled, so is the work.
        """
        task = asyncio.get_running_loop().create_task(work)
        try:
            await asyncio.wait((task,), timeout=self._seconds)
        except asyncio.CancelledError:
            self._give_up(task, tell)
            raise
        if not task.done():
            self._give_up(task, tell)
            raise OverdueError
        if task.cancelled():
            raise CancelledInsideError
        return task.result()

    def _give_up(self, task: asyncio.Task[Any], tell: Callable[[], object]) -> None:
        """Cancel work that nobody waits for any more, and look later whether it ended."""
        task.cancel()
        # without this reference the loop could lose the task, and with it what would still be cleared up
        self._left[task] = task.get_loop().call_later(PATIENCE_S, self._look, task, tell)
        task.add_done_callback(self._ended)

    def _look(self, task: asyncio.Task[Any], tell: Callable[[], object]) -> None:
        """Tell of work that goes on."""
        self._left[task] = None
        self.stubborn += 1
        tell()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Forget work that ended; what it raised is nobody's business any more."""
        timer = self._left.pop(task)
        if timer is None:
            self.stubborn -= 1
        else:
            timer.cancel()
        if not task.cancelled():
            task.exception()


async def while_wanted(work: Awaitable[T], gone: Callable[[], Awaitable[bool]]) -> T | None:
    """Return what the work returns, and raise what it raises; None where `gone` returned True before: then the work is cancelled.

    When whoever waits is cancelled, so is the work. A future is work that somebody else has taken over, as in a thread: that is
    waited for.
    """
    working = asyncio.ensure_future(work)
    if working is work:
        return await working
    leaving = asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done() and has_left(leaving):
            return None
        return await working
    finally:
        working.cancel()
        if not leaving.cancel():
            has_left(leaving)  # the loop complains of what was raised and not looked at


def has_left(leaving: asyncio.Future[bool]) -> bool:
    """Return what came of looking for the end of the caller; who cannot be looked after is there."""
    return not leaving.cancelled() and leaving.exception() is None and leaving.result()
