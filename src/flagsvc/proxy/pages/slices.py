"""Work in slices: the event loop answers callers in between."""

from __future__ import annotations

import asyncio
from time import perf_counter

SLICE_S = 0.0005
"""Seconds of work between two turns of the event loop. The last step of a slice may take longer."""


class Slices:
    """The slices of one answer."""

    def __init__(self) -> None:
        self._end = perf_counter() + SLICE_S

    async def rest(self) -> None:
        """Let the event loop run if the slice is used up. Called after each step of some work."""
        if perf_counter() >= self._end:
            await asyncio.sleep(0)
            self._end = perf_counter() + SLICE_S
