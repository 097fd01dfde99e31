"""Waiting for one of two things."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from flagsvc.core.clock import Clock


async def first_of(one: Awaitable[object], other: Awaitable[object]) -> None:
    """Return when one of two is done; the other one is cancelled. Raises what the first one raises."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()


async def happens_within(clock: Clock, seconds: float, event: asyncio.Event) -> bool:
    """Return whether an event happens before so many seconds are over."""
    if not event.is_set() and seconds > 0:
        await first_of(event.wait(), clock.sleep(seconds))
    return event.is_set()
