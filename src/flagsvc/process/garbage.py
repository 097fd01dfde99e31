"""Python's cyclic garbage collector in a process of ours: it does not look again and again at what lasts.

Modules and the compiled configuration are a hundred thousand objects; a full collection over them stops every request for tens of
milliseconds, and a refresh of the configuration sets one off. What has survived one is set aside.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping

EVERY = 16
"""In so many full collections one looks at everything: what was set aside may have become garbage since."""


class SurvivorFreezer:
    """Sets aside what survives a full collection; as a callback of the collector."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Take that a collection starts or has ended."""
        if info["generation"] != 2:
            return
        if phase == "stop":
            gc.freeze()
            return
        self._count += 1
        if self._count % EVERY == 0:
            gc.unfreeze()


@contextlib.contextmanager
def sparing_collector() -> Iterator[None]:
    """Have full collections look only at what is new, as long as the block runs. For a process that is ours alone."""
    spare = SurvivorFreezer()
    gc.freeze()
    gc.callbacks.append(spare)
    try:
        yield
    finally:
        gc.callbacks.remove(spare)
        gc.unfreeze()
