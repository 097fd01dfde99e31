"""A list answer for one class of contexts: what the class decides is bytes already, what remains is hashes. Compiled.

Most of what remains are rollouts over identifiers. They are numbers in native arrays, grouped by identifier and alignment, so that
one loop hashes an identifier with many prefixes and touches no object.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.context import Context
from flagsvc.engine.fragments import AnswerPieces
from flagsvc.engine.hashing import M32, Identifier, absorb, finish, scramble
from flagsvc.engine.list_entries import ListEntry
from flagsvc.engine.run import Memory, Run
from flagsvc.engine.strategies import DefaultRollout, StickyRollout
from flagsvc.engine.user_lists import UserLists
from flagsvc.engine.variant_draws import REST, VariantDraws

# the bits of a mark, which tells how a step ends
ADMITTED: Final = 1
"""It is admitted and ends with the bytes of `admitted`."""
REFUSED: Final = 2
"""If it is not admitted, it ends with the bytes of `refused` at its index."""
WHOLE: Final = 4
"""Its toggle is evaluated as a whole."""
DRAWS: Final = 8
"""It draws a variant when it is admitted, else it ends with the bytes of `admitted`."""
CHANCE: Final = 16
"""It is admitted by chance, for a share of the draws."""
SPECIAL: Final = WHOLE | DRAWS | CHANCE
INDEX: Final = 5
"""The shift of an index: of an entry for WHOLE, in the numbers of draws for DRAWS, else in `refused`."""
SHARE: Final = 40
"""The shift of the share of a step that is admitted by chance."""
INDEX_MASK: Final = (1 << (SHARE - INDEX)) - 1

# the bits of the two numbers of a rollout: state and rest of its prefix; then its share, the size of its prefix, its step
SHARE_MASK: Final = 127
SIZE: Final = 7
SIZE_MASK: Final = (1 << 32) - 1
PLACE: Final = 39
WIDTH: Final = 2
SIGN: Final = 63
"""The shift of the sign of a native integer."""


@mypyc_attr(acyclic=True)
class RolloutGroup:
    """Rollouts that stick to the same identifier, with prefixes that end at the same alignment.

    `rollout` is one of them. Those of default stickiness draw without an identifier. `numbers` has WIDTH for each.
    """

    def __init__(self, rollout: StickyRollout) -> None:
        self.rollout = rollout
        self.by_chance: bool = isinstance(rollout, DefaultRollout)
        self.numbers: vec[i64] = vec[i64]()

    def add(self, rollout: StickyRollout, place: i64) -> None:
        """Add a rollout, which decides the step at this place."""
        numbers = append(self.numbers, rollout.state | rollout.rest << REST)
        self.numbers = append(numbers, rollout.share | rollout.size << SIZE | place << PLACE)

    def decide(self, run: Run, marks: vec[i64]) -> None:
        """Mark the steps whose rollout admits the run, or those that must draw. Raises TypeError if a field is not a text."""
        identifier = self.rollout.identifier(run)
        if identifier is not None:
            self.hash(identifier, marks)
        elif self.by_chance:
            numbers = self.numbers
            at: i64 = 1
            while at < len(numbers):
                packed = numbers[at]
                marks[packed >> PLACE] |= CHANCE | (packed & SHARE_MASK) << SHARE
                at += WIDTH

    def hash(self, identifier: Identifier, marks: vec[i64]) -> None:
        """Mark the steps whose rollout admits an identifier."""
        aligned = identifier.aligned(self.rollout.size & 3)
        numbers = self.numbers
        blocks = aligned.blocks
        short = aligned.short
        head = aligned.head
        tail = aligned.tail
        length = identifier.size
        count: i64 = len(blocks)
        end: i64 = len(numbers)
        at: i64 = 0
        while at < end:
            prefix = numbers[at]
            packed = numbers[at + 1]
            state = prefix & M32
            joined = scramble((prefix >> REST) | head)
            if short:
                state ^= joined
            else:
                state = absorb(state, joined)
                block: i64 = 0
                while block < count:
                    state = absorb(state, blocks[block])
                    block += 1
                state ^= tail
            bucket = finish(state ^ (((packed >> SIZE) & SIZE_MASK) + length)) % 100
            # the sign of the difference is the answer: a branch would be predicted wrongly too often
            marks[packed >> PLACE] |= ((bucket - (packed & SHARE_MASK)) >> SIGN) & ADMITTED
            at += WIDTH


@mypyc_attr(acyclic=True)
class ClassProgram:
    """The steps of a list answer, in its order: the mark of each, and its bytes. A mark tells how they are used.

    `entries` are those whose toggle is evaluated as a whole. `lists` has for each list of `users`, by its number, the steps that it
    decides. `size` is the memory that the program takes, in bytes, about.
    """

    def __init__(
        self,
        memory: Memory,
        groups: list[RolloutGroup],
        draws: VariantDraws,
        entries: list[ListEntry],
        marks: vec[i64],
        refused: list[bytes],
        admitted: list[bytes],
        lists: dict[int, list[int]],
        users: UserLists,
        size: int,
    ) -> None:
        self.memory = memory
        self.groups = groups
        self.draws = draws
        self.entries = entries
        self.marks: vec[i64] = marks
        self.refused = refused
        self.admitted = admitted
        self.lists = lists
        self.users = users
        self.size: int = size

    def fill(self, context: Context, answer: AnswerPieces) -> None:
        """Add the fragments for a context of the class. Raises TypeError if an identifier is not a text, before it adds any."""
        run = Run(context, self.memory)
        identifiers = self.draws.identifiers(run)
        marks = self.marks[:]
        for group in self.groups:
            group.decide(run, marks)
        if self.lists and context.user_id is not None:
            self.mark_lists(context, marks)
        refused = self.refused
        admitted = self.admitted
        parts = answer.parts
        size: i64 = 0
        count: i64 = len(marks)
        at: i64 = 0
        while at < count:
            mark = marks[at]
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

    def mark_lists(self, context: Context, marks: vec[i64]) -> None:
        """Mark the steps whose list holds the user."""
        for number in self.users.holding(context):
            steps = self.lists.get(number)
            if steps is not None:
                for place in steps:
                    marks[place] |= ADMITTED

    def special_piece(self, at: i64, mark: i64, identifiers: list[Identifier | None], run: Run) -> bytes:
        """Return the bytes of a step that draws, or whose toggle is evaluated as a whole."""
        index = (mark >> INDEX) & INDEX_MASK
        if mark & WHOLE:
            return self.entries[index].encode_outcome(run)
        if mark & CHANCE and run.draw(100) <= mark >> SHARE:
            mark |= ADMITTED
        if mark & DRAWS:
            return self.draws.piece(index, identifiers, run) if mark & ADMITTED else self.admitted[at]
        if mark & ADMITTED:
            return self.admitted[at]
        return self.refused[index] if mark & REFUSED else b""
