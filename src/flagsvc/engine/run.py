"""The memory of one evaluation: memoised predicates, parents' outcomes, identifiers, random draws."""

from __future__ import annotations

import traceback
from typing import Final

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.context import SESSION_ID, USER_ID, Context
from flagsvc.engine.hashing import M32, Identifier, finish

UNKNOWN: Final = -1
MAX_FAULTS: Final = 100

STRATEGY: Final = "strategy"
TOGGLE: Final = "toggle"


class Fault:
    """An exception in an evaluation. `name` is that of a custom strategy or of a toggle, as `kind` says."""

    def __init__(self, kind: str, name: str, error: Exception) -> None:
        self.kind = kind
        self.name = name
        self.error = error


class Memory:
    """The sizes and the first memory for every run of one snapshot, and the faults of all runs."""

    def __init__(self, predicates: int, parents: int, utf8: bool) -> None:
        self.predicates: vec[i64] = vec[i64]([UNKNOWN] * predicates)
        self.parents: vec[i64] = vec[i64]([UNKNOWN] * parents)
        self.utf8 = utf8
        self.faults: list[Fault] = []

    def record_fault(self, kind: str, name: str, error: Exception) -> None:
        """Record an exception, without the values in its frames. Above a limit it is dropped."""
        if len(self.faults) < MAX_FAULTS:
            traceback.clear_frames(error.__traceback__)
            self.faults.append(Fault(kind, name, error))


@mypyc_attr(acyclic=True)
class Run:
    """One evaluation of one context."""

    def __init__(self, context: Context, memory: Memory) -> None:
        self.context = context
        self.memory = memory
        self.predicates: vec[i64] = memory.predicates[:]
        self.slots: i64 = len(memory.predicates)
        self.parents: vec[i64] = memory.parents[:]
        self.user: Identifier | None = None
        self.session: Identifier | None = None
        self.sticky: Identifier | None = None
        self.sticky_known: bool = False
        self.others: dict[str, Identifier] | None = None
        self.draws: i64 = 0

    def user_or_session(self) -> Identifier | None:
        """Return the identifier of default stickiness: userId, else sessionId, else None."""
        if not self.sticky_known:
            self.sticky_known = True
            if self.context.user_id:
                self.sticky = self.identify(USER_ID, "userId")
            elif self.context.session_id:
                self.sticky = self.identify(SESSION_ID, "sessionId")
        return self.sticky

    def identify(self, kind: i64, name: str) -> Identifier | None:
        """Return the identifier in the field of this kind and name; None if it is absent or empty."""
        if kind == USER_ID and self.user is not None:
            return self.user
        if kind == SESSION_ID and self.session is not None:
            return self.session
        text = self.context.read(kind, name)
        if not text:
            return None
        if kind == USER_ID:
            self.user = Identifier(text, self.memory.utf8)
            return self.user
        if kind == SESSION_ID:
            self.session = Identifier(text, self.memory.utf8)
            return self.session
        return self.other_identifier(name, text)

    def other_identifier(self, name: str, text: str) -> Identifier:
        if self.others is None:
            self.others = {}
        known = self.others.get(name)
        if known is None:
            known = Identifier(text, self.memory.utf8)
            self.others[name] = known
        return known

    def draw(self, total: i64) -> i64:
        """Return the next random number of this run, 1 to `total`: a counter added to the seed, through murmur's finisher."""
        self.draws += 1
        low: i64 = self.context.entropy & M32
        high: i64 = (self.context.entropy >> 32) & M32
        return finish(finish((low + self.draws * 0x9E3779B9) & M32) ^ high) % total + 1
