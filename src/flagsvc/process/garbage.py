"""Settings of Python's cyclic garbage collector: long-lived objects are not scanned in every full collection.

Modules and the compiled configuration are a hundred thousand objects. A full collection over them stops every request for tens of
milliseconds, and each refresh of the configuration triggers one. So the objects that survive a collection are frozen. Those
of the youngest generation, which are frequent and small, freeze nothing.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping

UNFREEZE_S = 600.0
"""Seconds after which a full collection scans all objects: frozen objects may have become garbage."""


class SurvivorFreezer:
    """A callback of the collector that freezes the objects that survive a collection of the middle or the oldest generation."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Take what tells the time, in seconds."""
        self._monotonic = monotonic
        self._unfrozen_at = monotonic()

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Handle the start or the end of a collection."""
        generation = info["generation"]
        if generation and phase == "stop":
            gc.freeze()
        elif generation == 2:
            now = self._monotonic()
            if now >= self._unfrozen_at + UNFREEZE_S:
                self._unfrozen_at = now
                gc.unfreeze()


@contextlib.contextmanager
def freeze_survivors(monotonic: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Let collections scan only new objects while the block runs. Not for processes of embedding programs."""
    freezer = SurvivorFreezer(monotonic)
    gc.freeze()
    gc.callbacks.append(freezer)
    try:
        yield
    finally:
        gc.callbacks.remove(freezer)
        gc.unfreeze()
