"""Settings of Python's cyclic garbage collector: long-lived objects are not scanned in every full collection.

Modules and the compiled configuration are a hundred thousand objects. A full collection over them stops every request for tens of
milliseconds, and each refresh of the configuration triggers one. So the objects that survive a full collection are frozen.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping

UNFREEZE_EVERY = 16
"""One in this many full collections scans all objects: frozen objects may have become garbage."""


class SurvivorFreezer:
    """A callback of the collector that freezes the objects that survive a full collection."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Handle the start or the end of a collection."""
        if info["generation"] != 2:
            return
        if phase == "stop":
            gc.freeze()
            return
        self._count += 1
        if self._count % UNFREEZE_EVERY == 0:
            gc.unfreeze()


@contextlib.contextmanager
def freeze_survivors() -> Iterator[None]:
    """Let full collections scan only new objects while the block runs. Not for processes of embedding programs."""
    freezer = SurvivorFreezer()
    gc.freeze()
    gc.callbacks.append(freezer)
    try:
        yield
    finally:
        gc.callbacks.remove(freezer)
        gc.unfreeze()
