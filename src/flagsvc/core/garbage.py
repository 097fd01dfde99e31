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

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Take what tells the time, in seconds."""
        self._monotonic = monotonic
        self._scanned_at = monotonic()
        self._is_thawed = False

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Handle the end of a collection."""
        generation = info["generation"]
        if phase != "stop" or not generation:
            return
        now = self._monotonic()
        if generation == 2:
            self._is_thawed, self._scanned_at = False, now
        elif now >= self._scanned_at + UNFREEZE_S and not self._is_thawed:
            # freezing also resets what the collector counts, so there is no full collection until it stops
            self._is_thawed = True
            gc.unfreeze()
        if not self._is_thawed:
            gc.freeze()


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


def collect_new() -> None:
    """Let the collector look at what is new, within `freeze_survivors`. Elsewhere it belongs to the program around us."""
    if any(isinstance(each, SurvivorFreezer) for each in gc.callbacks):
        gc.collect(1)
