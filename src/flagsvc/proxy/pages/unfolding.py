"""The served configuration as people read it: strategies with titles and nodes. Made when a page asks, and kept for a minute."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import Compiled
from flagsvc.engine.source import DocumentParts, source_of, split
from flagsvc.http.http_errors import not_ready
from flagsvc.http.messages import HttpError
from flagsvc.proxy.configuration.prepare import BYTE_ORDER_MARK, decode
from flagsvc.proxy.configuration.retire import release_in_slices, retire
from flagsvc.proxy.pages.scene import ShownEnvironment
from flagsvc.proxy.pages.slices import Slices
from flagsvc.reasons.unfolded import Unfolded

KEEP_S: Final = 60.0
"""Seconds that an unfolded configuration is kept after its last use."""


class Kept:
    """An unfolded configuration: the names of its toggles in order, and what forgets it."""

    def __init__(self, unfolded: Unfolded, names: list[str]) -> None:
        self.unfolded = unfolded
        self.names = names
        self.timer: asyncio.TimerHandle | None = None

    @property
    def revision(self) -> str:
        """The revision of the snapshot."""
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
        lists: list[list[object]] = [list(unfolded.raw.values()), list(unfolded.known.values())]
        unfolded.raw, unfolded.known = {}, {}
        release_in_slices(lists)
        if unfolded.compiled.snapshot is not shown.holder.current:
            retire(unfolded.compiled.snapshot)


async def unfold(shown: ShownEnvironment, slices: Slices) -> Kept:
    """Return the served configuration, unfolded in slices. Raises HttpError (503) while there is none."""
    snapshot, document = shown.holder.current, shown.holder.document
    if snapshot is None or document is None:
        raise not_ready()
    unfolded = Unfolded({"features": []}, shown.compile_options, Compiled(snapshot, []))
    parts = split_document(document.body.removeprefix(BYTE_ORDER_MARK))
    await slices.rest()
    try:
        for raw in parts.segments:
            unfolded.add_segment(parts.decoded(raw))
            await slices.rest()
        for raw in parts.features:
            unfolded.add_feature(parts.decoded(raw))
            await slices.rest()
    except (msgspec.MsgspecError, UnicodeDecodeError, DocumentError) as error:
        raise HttpError(500, f"the served document cannot be explained: {type(error).__name__}", []) from None
    return Kept(unfolded, sorted(snapshot.toggles, key=str.casefold))


def split_document(body: bytes) -> DocumentParts:
    """Return the pieces of a document that is served, so it is well-formed; those of an unusual one are decoded."""
    found = split(body)
    if found is None:
        return source_of(decode(body))
    return found
