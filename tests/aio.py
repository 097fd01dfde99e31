"""Runs asynchronous tests: each in an event loop of its own, bounded in time."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

SECONDS = 30.0


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make an ordinary test of an asynchronous one; it fails when it takes longer than SECONDS."""

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), SECONDS))

    return run


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Return when `condition` holds; for what happens in threads and on sockets, where no event tells."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is nothing to wait for but time
            await asyncio.sleep(0.002)
