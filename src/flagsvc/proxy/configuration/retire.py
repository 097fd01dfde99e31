"""Releases the memory of a configuration that is no longer served, in slices: freeing a large one at once takes milliseconds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from flagsvc.engine.lists import Container
from flagsvc.engine.snapshot import Snapshot

SLICE_OBJECTS = 250
"""Objects that are released in one iteration of the event loop, unless their owner names a number."""
TRIES = 5
TRY_PAUSE_S = 1.0
"""Seconds until a release looks again whether a container is still used, and how often it does."""


def retire(snapshot: Snapshot | None) -> None:
    """Release the content of a snapshot in slices, once nothing else uses it. Without a running event loop, do nothing."""
    if snapshot is not None:
        release_in_slices(snapshot.containers())


def release_in_slices(containers: Sequence[tuple[Container, int]]) -> None:
    """Begin to empty containers in slices. Those that are still used then are tried again a few times, and then let go."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    loop.call_soon(Release(loop, containers).advance)


class Release:
    """Empties containers in slices. It makes no copies: the cyclic collector would look at each of their items."""

    def __init__(self, loop: asyncio.AbstractEventLoop, containers: Sequence[tuple[Container, int]]) -> None:
        self._loop = loop
        self._left = list(containers)
        self._used: list[tuple[Container, int]] = []
        self._tries = TRIES

    def advance(self) -> None:
        """Remove one slice, and schedule the next one."""
        while self._left:
            if count_references(self._left) > OWN_REFERENCES:
                self._used.append(self._left.pop())
                continue
            container, count = self._left[-1]
            remove(container, count)
            if not container:
                self._left.pop()
            self._loop.call_soon(self.advance)
            return
        if self._used and self._tries:
            self._tries -= 1
            self._left, self._used = self._used[::-1], []
            self._loop.call_later(TRY_PAUSE_S, self.advance)


def count_references(left: list[tuple[Container, int]]) -> int:
    """Return the number of references to the last container, with the references of this function."""
    container, _ = left[-1]
    return sys.getrefcount(container)


OWN_REFERENCES = count_references([([], 0)])
"""The references to a container that only a release knows. Versions of Python count them differently."""


def remove(container: Container, count: int) -> None:
    """Remove some items at the end."""
    if isinstance(container, list):
        del container[-count:]
    else:
        for _ in range(min(count, len(container))):
            container.popitem()
