"""What people ask about the changes of an environment: its last revisions, the flags that each changed, and its last states.

Only pages read it, so a process without pages keeps none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from flagsvc.engine.parts import Part
from flagsvc.proxy.configuration.holder import Holder

KEPT: Final = 50
"""The number of revisions, and of changes of state, that are kept."""
NAMED: Final = 100
"""The most names of each kind that a revision keeps; of further flags it keeps the number."""
SLICE_FLAGS: Final = 100
"""Flags that are compared in one iteration of the event loop, which takes about a tenth of a millisecond."""


class Names:
    """The names of some flags: the first NAMED of them, and their number."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def add(self, name: str) -> None:
        self.count += 1
        if self.count <= NAMED:
            self.first.append(name)


class Revision:
    """A revision that this process serves or served `since` a moment in seconds since the epoch, with so many flags.

    `short` is the revision as people compare it. The flags that it changed are known when it `is_compared`. The first one is not
    compared with another.
    """

    def __init__(self, revision: str, short: str, since: float, flags: int, *, is_first: bool) -> None:
        self.revision = revision
        self.short = short
        self.since = since
        self.flags = flags
        self.is_first = is_first
        self.is_compared = is_first
        self.added, self.removed, self.changed = Names(), Names(), Names()


class StateChange(NamedTuple):
    """A change of the state at a moment in seconds since the epoch."""

    since: float
    before: str
    after: str


class KnownFlag(NamedTuple):
    """A flag as the last compared revision had it, and the revision that changed it last."""

    digest: bytes
    segments: tuple[tuple[str, bytes], ...]
    changed_in: Revision


class ChangeLog:
    """The changes of one environment. `forget` is told the names of the flags that a revision removed."""

    def __init__(self, now: Callable[[], float], forget: Callable[[Sequence[str]], object]) -> None:
        self.revisions: deque[Revision] = deque(maxlen=KEPT)
        self.states: deque[StateChange] = deque(maxlen=KEPT)
        self._now = now
        self._forget = forget
        self._holder: Holder | None = None
        self._known: dict[str, KnownFlag] = {}
        self._waiting: deque[tuple[Revision, list[Part]]] = deque()
        self._steps: Iterator[None] | None = None

    def watch(self, holder: Holder) -> None:
        """Keep the changes of a holder from now on."""
        self._holder = holder
        holder.parts.add(self)
        holder.on_state = self.note_state

    def changed_in(self, name: str) -> Revision | None:
        """Return the revision that changed a flag last; None for an unknown flag, and before the first comparison."""
        found = self._known.get(name)
        return None if found is None else found.changed_in

    def note_state(self, before: str, after: str) -> None:
        self.states.append(StateChange(self._now(), before, after))

    def follow(self) -> None:
        """Note the revision that is served now, unless it is the last one, and compare its flags in slices."""
        holder = self._holder
        snapshot, document = (None, None) if holder is None else (holder.current, holder.document)
        last = self.revisions[-1] if self.revisions else None
        if snapshot is None or document is None or (last is not None and last.revision == snapshot.revision):
            return
        found = Revision(snapshot.revision, document.revision, self._now(), len(snapshot.names), is_first=last is None)
        self.revisions.append(found)
        self._waiting.append((found, snapshot.lineage.parts))
        if self._steps is None:
            self._steps = self._compare_all()
            self._advance()

    def _advance(self) -> None:
        """Do one slice of the comparison, and schedule the next one. Without a running event loop, do all of it."""
        assert self._steps is not None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            deque(self._steps, maxlen=0)
            self._steps = None
            return
        if sum(1 for _ in islice(self._steps, SLICE_FLAGS)) < SLICE_FLAGS:
            self._steps = None
        else:
            loop.call_soon(self._advance)

    def _compare_all(self) -> Iterator[None]:
        """Compare every revision that waits with the one before it. A step is a flag."""
        while self._waiting:
            yield from self._compare(*self._waiting[0])
            self._waiting.popleft()

    def _compare(self, revision: Revision, parts: Sequence[Part]) -> Iterator[None]:
        """Find the flags that a revision added, changed and removed."""
        served: dict[str, Part] = {}
        for part in parts:
            if part.toggle is not None:
                served[part.toggle.name] = part  # of equal names the last one is served
            yield
        before, known, removed = self._known, {}, []
        for name, part in served.items():
            known[name] = flag = compare(part, before.get(name), revision)
            if flag.changed_in is revision and not revision.is_first:
                (revision.changed if name in before else revision.added).add(name)
            yield
        for name in before:
            if name not in known:
                revision.removed.add(name)
                removed.append(name)
            yield
        self._known = known
        revision.is_compared = True
        self._forget(removed)


def compare(part: Part, before: KnownFlag | None, revision: Revision) -> KnownFlag:
    """Return a flag as a revision has it: the same as before if neither the flag nor its segments have changed."""
    if before is not None and before.digest == part.digest and before.segments == part.segments:
        return before
    return KnownFlag(part.digest, part.segments, revision)
