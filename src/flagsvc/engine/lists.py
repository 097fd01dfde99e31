"""The list answers: their entries, which have the bytes of each outcome of a toggle, and how a context is answered from them.

The bytes of constant toggles are joined to the front of the next toggle that is evaluated. Entries that did not change are reused
from the previous snapshot.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.context import Context
from flagsvc.engine.features import FIRST_VARIANT, OFF, ON, Toggle, ToggleOutcome
from flagsvc.engine.fragments import AnswerPieces, AnswerShape
from flagsvc.engine.run import TOGGLE, Memory, Run
from flagsvc.engine.strategies import CompiledStrategy

Container: TypeAlias = list[Any] | dict[Any, Any]
"""What is released item by item."""
RELEASED: Final = 250
"""Items of a list or dict that are released at once."""
MAX_JOINED_BYTES: Final = 65536
"""Limit on the bytes of static toggles joined to a dynamic one, over all its outcomes. A longer run becomes its own entry."""


@mypyc_attr(acyclic=True)
class ListEntry:
    """A toggle to evaluate, and the bytes to append for each of its outcomes: `front`, the static toggles before it, and its own.

    The cost of a large answer is the time to reach its parts in memory. So the parts that most toggles need are attributes:
    `off` and `on`, the bytes of the first two outcomes, and `rule`, the strategy that alone decides the toggle.
    """

    def __init__(self, toggle: Toggle, front: bytes, pieces: list[bytes]) -> None:
        self.rule: CompiledStrategy | None = toggle.rule()
        self.off = pieces[OFF]
        self.on = pieces[ON]
        self.toggle = toggle
        self.variants = pieces[FIRST_VARIANT:]
        self.front = front

    def encode_outcome(self, run: Run) -> bytes:
        """Return the bytes to append for this run. An exception turns off this toggle only."""
        rule = self.rule
        if rule is not None:
            try:
                return self.on if rule.active(run) else self.off
            except Exception as error:
                run.memory.record_fault(TOGGLE, self.toggle.name, error)
                return self.off
        return self.piece(self.toggle.outcome(run))

    def piece(self, outcome: i64) -> bytes:
        if outcome == OFF:
            return self.off
        if outcome == ON:
            return self.on
        return self.variants[outcome - FIRST_VARIANT]


class ListBuilder:
    """Makes the entries of one list answer from the toggles in their order, a few at a time.

    `everything` also lists the toggles that are off. `known` are the entries of the previous snapshot in the same shape. `toggles`
    are the toggles of the new snapshot by name; they show which known toggles are gone.
    """

    def __init__(self, shape: AnswerShape, everything: bool, known: list[ListEntry], toggles: dict[str, Toggle]) -> None:
        self.shape = shape
        self.everything = everything
        self.known = known
        self.toggles = toggles
        self.entries: list[ListEntry] = []
        self.static: list[bytes] = []
        self.size = 0
        self.at = 0

    def add(self, toggle: Toggle) -> None:
        outcomes = toggle.outcomes
        if toggle.constant >= 0:
            piece = self.piece(outcomes[toggle.constant], toggle)
            if piece:
                self.static.append(piece)
                self.size += len(piece)
            return
        if self.size * len(outcomes) > MAX_JOINED_BYTES:
            self.finish()
        front = b"".join(self.static) if self.static else b""
        self.static.clear()
        self.size = 0
        same = self.reusable_entry(toggle, front)
        self.entries.append(ListEntry(toggle, front, self.pieces(toggle, front)) if same is None else same)

    def finish(self) -> None:
        """Add an entry for the remaining static toggles."""
        if self.static:
            self.entries.append(constant(b"".join(self.static)))
        self.static.clear()
        self.size = 0

    def pieces(self, toggle: Toggle, front: bytes) -> list[bytes]:
        """Return the bytes to append for each outcome."""
        if front:
            return [front + self.piece(outcome, toggle) for outcome in toggle.outcomes]
        return [self.piece(outcome, toggle) for outcome in toggle.outcomes]

    def piece(self, outcome: ToggleOutcome, toggle: Toggle) -> bytes:
        """Return the bytes of one outcome in this list, without the static toggles before it."""
        return self.shape.fragment(outcome, toggle) if self.everything or outcome.enabled else b""

    def reusable_entry(self, toggle: Toggle, front: bytes) -> ListEntry | None:
        """Return the entry of the previous snapshot for the same toggle and the same front; None if there is none at this place."""
        while self.at < len(self.known):
            entry = self.known[self.at]
            if entry.toggle is toggle:
                self.at += 1
                return entry if entry.front == front else None
            if self.toggles.get(entry.toggle.name) is entry.toggle:
                # the old entry's toggle comes later, so this toggle is new
                return None
            self.at += 1
        return None


class AnswerList:
    """The entries of one list answer. `mark` names it among the lists of a snapshot and of its parts."""

    def __init__(self, entries: list[ListEntry], mark: str) -> None:
        self.entries = entries
        self.mark = mark


class Lists:
    """Answers contexts from the entries of a list: it decides one toggle after the other. A subclass may know a shorter way."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def fill(self, context: Context, answered: AnswerList, answer: AnswerPieces) -> None:
        """Add the fragments of a list."""
        run = Run(context, self.memory)
        parts = answer.parts
        size: i64 = 0
        for entry in answered.entries:
            piece = entry.encode_outcome(run)
            if len(piece) > 0:
                parts.append(piece)
                size += len(piece)
        answer.size = size

    def containers(self) -> list[tuple[Container, int]]:
        """Return what `Snapshot.containers` does, of what is kept beside the entries."""
        return []


class ListViews:
    """The list answers in one shape: of the toggles that are on (`listed`), and of every toggle (`complete`).

    `scope` tells which toggles these are, if they are not all of a snapshot.
    """

    def __init__(self, shape: AnswerShape, listed: list[ListEntry], complete: list[ListEntry], scope: str) -> None:
        self.shape = shape
        name = scope + shape.name.decode()
        self.listed = AnswerList(listed, f"{name}e")
        self.complete = AnswerList(complete, f"{name}a")


class ListViewsBuilder:
    """Makes the list answers in one shape, toggle by toggle. `known` are the list answers of the previous snapshot, or None."""

    def __init__(self, shape: AnswerShape, known: ListViews | None, toggles: dict[str, Toggle], scope: str = "") -> None:
        self.shape = shape
        self.scope = scope
        self.listed = ListBuilder(shape, False, [] if known is None else known.listed.entries, toggles)
        self.complete = ListBuilder(shape, True, [] if known is None else known.complete.entries, toggles)

    def add(self, toggle: Toggle) -> None:
        self.listed.add(toggle)
        self.complete.add(toggle)

    def finish(self) -> ListViews:
        self.listed.finish()
        self.complete.finish()
        return ListViews(self.shape, self.listed.entries, self.complete.entries, self.scope)


def constant(piece: bytes) -> ListEntry:
    """Return an entry with only static toggles."""
    toggle = Toggle("", [])
    toggle.constant = ON
    return ListEntry(toggle, b"", [b"", piece])
