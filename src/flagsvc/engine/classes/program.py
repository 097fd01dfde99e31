"""A list answer for one class of contexts: what the class decides is bytes already, what remains is hashes. Compiled.

Most of what remains are rollouts over identifiers. They are numbers in native arrays (`rollouts.py`).
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i32, i64, mypyc_attr

from flagsvc.engine.classes.draws import VariantDraws
from flagsvc.engine.classes.marks import ADMITTED, CHANCE, DRAWS, INDEX, REFUSED, SPECIAL, WHOLE
from flagsvc.engine.classes.rollouts import RolloutGroup
from flagsvc.engine.classes.users import UserLists
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import AnswerPieces
from flagsvc.engine.hashing import Identifier
from flagsvc.engine.lists import ListEntry
from flagsvc.engine.run import Memory, Run

MAX_RUNS: Final = 4096
"""The joined fragments of a list that are found again."""
PLACE: Final = 32
"""The shift of a list's number, in a number that has the place of a step, too."""
PLACE_MASK: Final = (1 << PLACE) - 1


class ClassMemory(Memory):
    """The first memory for the runs of a class: what the class decides. Faults go to the memory of the snapshot."""

    def __init__(self, whole: Memory, predicates: vec[i64], parents: vec[i64]) -> None:
        super().__init__(0, 0, whole.utf8)
        self.whole = whole
        self.predicates = predicates
        self.parents = parents

    def record_fault(self, kind: str, name: str, error: Exception) -> None:
        self.whole.record_fault(kind, name, error)


class SharedPieces:
    """What the programs of one list share: the draws of variants, and decided fragments that are joined.

    `classes` is the number of classes whose program shares it.
    """

    def __init__(self) -> None:
        self.draws = VariantDraws()
        self.runs: dict[bytes, bytes] = {}
        self.classes: i64 = 0

    def shared_run(self, run: bytes) -> bytes:
        """Return the same bytes as one object for all programs; `run` itself for the first one."""
        if len(self.runs) >= MAX_RUNS:
            self.runs = {}
        return self.runs.setdefault(run, run)


@mypyc_attr(acyclic=True)
class ClassProgram:
    """The steps of a list answer, in its order: the mark of each, and its bytes. A mark tells how they are used.

    `entries` are those whose toggle is evaluated as a whole. `lists` has, in their order, the number of a list of `users` and the
    place of a step that it decides. `size` is the memory that the program takes, in bytes, about.
    """

    def __init__(
        self,
        memory: Memory,
        groups: list[RolloutGroup],
        draws: VariantDraws,
        entries: list[ListEntry],
        marks: vec[i32],
        refused: list[bytes],
        admitted: list[bytes],
        lists: vec[i64],
        users: UserLists,
        size: int,
    ) -> None:
        self.memory = memory
        self.groups = groups
        self.draws = draws
        self.entries = entries
        self.marks: vec[i32] = marks
        self.refused = refused
        self.admitted = admitted
        self.lists: vec[i64] = lists
        self.users = users
        self.size: int = size

    def fill(self, context: Context, answer: AnswerPieces) -> None:
        """Add the fragments for a context of the class. Raises TypeError if an identifier is not a text, before it adds any."""
        run = Run(context, self.memory)
        identifiers = self.draws.identifiers(run)
        marks = self.marks[:]
        for group in self.groups:
            group.decide(run, marks)
        if len(self.lists) > 0 and context.user_id is not None:
            self.mark_lists(context, marks)
        refused = self.refused
        admitted = self.admitted
        parts = answer.parts
        size: i64 = 0
        count: i64 = len(marks)
        at: i64 = 0
        while at < count:
            mark = i64(marks[at])
            if mark & SPECIAL:
                piece = self.special_piece(at, mark, identifiers, run)
                if len(piece) > 0:
                    parts.append(piece)
                    size += len(piece)
            elif mark:
                piece = admitted[at] if mark & ADMITTED else refused[mark >> INDEX]
                parts.append(piece)
                size += len(piece)
            at += 1
        answer.size = size

    def mark_lists(self, context: Context, marks: vec[i32]) -> None:
        """Mark the steps whose list holds the user."""
        lists = self.lists
        end: i64 = len(lists)
        for number in self.users.holding(context):
            at = first_of(lists, number)
            while at < end and lists[at] >> PLACE == number:
                marks[lists[at] & PLACE_MASK] |= ADMITTED
                at += 1

    def special_piece(self, at: i64, mark: i64, identifiers: list[Identifier | None], run: Run) -> bytes:
        """Return the bytes of a step that draws, or whose toggle is evaluated as a whole."""
        index = mark >> INDEX
        if mark & WHOLE:
            return self.entries[index].encode_outcome(run)
        if mark & CHANCE and run.draw(100) <= self.share(at):
            mark |= ADMITTED
        if mark & DRAWS:
            return self.draws.piece(index, identifiers, run) if mark & ADMITTED else self.admitted[at]
        if mark & ADMITTED:
            return self.admitted[at]
        return self.refused[index] if mark & REFUSED else b""

    def share(self, step: i64) -> i64:
        """Return the share of the draws that a step is admitted for."""
        share: i64 = -1
        for group in self.groups:
            if share < 0 and group.by_chance:
                share = group.share(step)
        return share


def first_of(lists: vec[i64], number: i64) -> i64:
    """Return the place of the first item of a list, by the number of the list. An empty list has the place of the next list."""
    low: i64 = 0
    high: i64 = len(lists)
    while low < high:
        middle = (low + high) >> 1
        if lists[middle] >> PLACE < number:
            low = middle + 1
        else:
            high = middle
    return low
