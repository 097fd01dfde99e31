"""Giving back the memory of a configuration that is no longer served, bit by bit: freeing a large one takes milliseconds."""

from __future__ import annotations

import asyncio
from typing import Protocol, runtime_checkable

AT_ONCE = 500
"""Objects that are let go between two turns of the event loop."""


@runtime_checkable
class Retirable(Protocol):
    """A configuration that tells what it holds most of."""

    def remains(self) -> list[list[object]]:
        """Return that, in lists that are nobody else's."""


def retire(snapshot: object) -> None:
    """Hold on to what a configuration is made of, and let go of it in slices; outside of a loop all at once."""
    if isinstance(snapshot, Retirable):
        let_go(snapshot.remains())


def let_go(lists: list[list[object]]) -> None:
    """Empty the lists by a slice, and see to it that the next follows."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    for each in lists:
        if each:
            del each[-AT_ONCE:]
            loop.call_soon(let_go, lists)
            return
