"""Runs asynchronous tests: each in an event loop of its own, bounded in time."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

SECONDS = 30.0
GIVEN_UP_S = 3.0
"""Well above the time-outs that rows of options give, well below the defaults."""
SLICES = 30


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make an ordinary test of an asynchronous one; it fails when it takes longer than SECONDS."""

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), SECONDS))

    return run


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Return when `condition` holds, which may also be a coroutine function. For threads and sockets, which give no event."""
    async with asyncio.timeout(seconds):
        while not (await held if inspect.isawaitable(held := condition()) else held):  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def fate(reader: asyncio.StreamReader) -> str:
    """Return whether a connection is `closed` by the other side or still `open` after GIVEN_UP_S.

    The time is counted in slices: a machine that stops for a while takes one from us, as it does from the other side.
    """
    reading = asyncio.ensure_future(reader.read())
    for _ in range(SLICES):
        done, _ = await asyncio.wait({reading}, timeout=GIVEN_UP_S / SLICES)
        if done:
            assert reading.exception() is None or isinstance(reading.exception(), OSError)
            return "closed"
    reading.cancel()
    return "open"
