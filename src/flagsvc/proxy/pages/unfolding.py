"""The served configuration as people read it: strategies with titles and nodes. Made when a page asks, and kept for a minute."""

from __future__ import annotations

import asyncio
from typing import Final

from flagsvc.engine.compile import Compiled
from flagsvc.engine.source import DocumentParts
from flagsvc.http.http_errors import not_ready
from flagsvc.proxy.configuration.retire import SLICE_OBJECTS, release_in_slices, retire
from flagsvc.proxy.pages.page import ShownEnvironment, Slices
from flagsvc.reasons.unfolded import Unfolded

KEEP_S: Final = 60.0
"""Seconds that an unfolded configuration is kept after its last use."""


class Kept:
    """An unfolded configuration: its revision as people compare it, the names of its toggles in order, and what forgets it."""

    def __init__(self, unfolded: Unfolded, short: str, names: list[str]) -> None:
        self.unfolded = unfolded
        self.short = short
        self.names = names
        self.timer: asyncio.TimerHandle | None = None

    @property
    def revision(self) -> str:
        return self.unfolded.compiled.snapshot.revision


class UnfoldedConfigurations:
    """The unfolded configurations of a process, one for each environment that is looked at.

    They evaluate with the very snapshot that callers get. That is safe, because it happens in the same thread.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._lock = asyncio.Lock()

    async def find(self, shown: ShownEnvironment, slices: Slices) -> Kept:
        """Return the unfolded configuration that an environment serves now. Raises HttpError (503) while there is none."""
        async with self._lock:
            kept = self._kept.get(shown.name)
            served = shown.holder.current
            if kept is None or kept.unfolded.compiled.snapshot is not served:
                self._forget(shown)
                kept = self._kept[shown.name] = await unfold(shown, slices)
        if kept.timer is not None:
            kept.timer.cancel()
        kept.timer = asyncio.get_running_loop().call_later(KEEP_S, self._forget, shown)
        return kept

    def _forget(self, shown: ShownEnvironment) -> None:
        """Forget what is kept of an environment, and release its memory in slices."""
        kept = self._kept.pop(shown.name, None)
        if kept is None:
            return
        if kept.timer is not None:
            kept.timer.cancel()
        unfolded = kept.unfolded
        release_in_slices([(unfolded.raw, SLICE_OBJECTS), (unfolded.known, SLICE_OBJECTS)])
        if unfolded.compiled.snapshot is not shown.holder.current:
            retire(unfolded.compiled.snapshot)


async def unfold(shown: ShownEnvironment, slices: Slices) -> Kept:
    """Return the served snapshot, unfolded in slices from the features that it was made of.

    Raises HttpError (503) while there is none.
    """
    snapshot, document = shown.holder.current, shown.holder.document
    if snapshot is None or document is None:
        raise not_ready()
    lineage = snapshot.lineage
    parts = DocumentParts(lineage.sources, lineage.segment_sources, lineage.raw)
    unfolded = Unfolded({"features": []}, shown.compile_options, Compiled(snapshot, []))
    for segment in lineage.segment_parts:
        unfolded.add_segment_part(segment)
    for source in parts.features:
        unfolded.add_feature(parts.decoded(source))
        await slices.rest()
    return Kept(unfolded, document.revision, sorted(snapshot.toggles, key=str.casefold))
