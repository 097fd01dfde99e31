"""Releases the memory of a configuration that is no longer served, in slices: freeing a large one at once takes milliseconds."""

from __future__ import annotations

import asyncio
from typing import Protocol, runtime_checkable

SLICE_OBJECTS = 500
"""Objects that are released in one iteration of the event loop."""


@runtime_checkable
class Retirable(Protocol):
    """A configuration that can list its largest parts."""

    def list_contents(self) -> list[list[object]]:
        """Return these parts, in new lists that nothing else refers to."""


def retire(snapshot: object) -> None:
    """Release the parts of a configuration in slices. Without a running event loop, release all of them together."""
    if isinstance(snapshot, Retirable):
        release_in_slices(snapshot.list_contents())


def release_in_slices(lists: list[list[object]]) -> None:
    """Remove one slice from the lists, and schedule the next slice."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    for each in lists:
        if each:
            del each[-SLICE_OBJECTS:]
            loop.call_soon(release_in_slices, lists)
            return
