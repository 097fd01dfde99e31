"""The rollouts of a list answer, as numbers in native arrays, so that one loop hashes an identifier with many prefixes. Compiled.

What a rollout hashes and admits does not depend on the class of a context, nor on the list. So all programs share these numbers.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i32, i64, mypyc_attr

from flagsvc.engine.classes.draws import REST
from flagsvc.engine.classes.marks import ADMITTED, CHANCE
from flagsvc.engine.hashing import M32, Identifier, absorb, finish, scramble
from flagsvc.engine.run import Run
from flagsvc.engine.strategies import DefaultRollout, StickyRollout

SHARE_MASK: Final = 127
SIZE: Final = 7
"""The shift of a prefix's size in a number that has the share, too."""
SIGN: Final = 63
"""The shift of the sign of a native integer."""
PLACE_MASK: Final = (1 << 32) - 1
ROLLOUT: Final = 130
"""Bytes that the numbers of a rollout take, with the place that is remembered, about."""
NUMBERS: Final = 32
"""The shift of the place of a rollout's numbers, in a number that has the place of its step, too."""


@mypyc_attr(acyclic=True)
class RolloutNumbers:
    """Two numbers for each rollout: state and rest of its prefix, then its share and the size of its prefix.

    `places` tells where those of a rollout begin. All take `size` bytes, about.
    """

    def __init__(self) -> None:
        self.numbers: vec[i64] = vec[i64]()
        self.places: dict[int, int] = {}
        self.size: i64 = 0

    def place(self, rollout: StickyRollout) -> int:
        """Return the place of a rollout's numbers. They are added if they are not there."""
        place = self.places.get(id(rollout))
        if place is None:
            place = len(self.numbers)
            self.places[id(rollout)] = place
            numbers = append(self.numbers, rollout.state | rollout.rest << REST)
            self.numbers = append(numbers, rollout.share | rollout.size << SIZE)
            self.size += ROLLOUT
        return place


@mypyc_attr(acyclic=True)
class RolloutGroup:
    """Rollouts that stick to the same identifier, with prefixes that end at the same alignment.

    `rollout` is one of them. Those of default stickiness draw without an identifier. `shared` has the numbers of all rollouts.
    `steps` has, in the order of the steps, the place of a rollout's numbers and the place of the step that it decides.
    """

    def __init__(self, rollout: StickyRollout, shared: RolloutNumbers) -> None:
        self.rollout = rollout
        self.shared = shared
        self.by_chance: bool = isinstance(rollout, DefaultRollout)
        self.steps: vec[i64] = vec[i64]()

    def add(self, rollout: StickyRollout, step: i64) -> None:
        place: i64 = self.shared.place(rollout)
        self.steps = append(self.steps, step | place << NUMBERS)

    def decide(self, run: Run, marks: vec[i32]) -> None:
        """Mark the steps whose rollout admits the run, or those that must draw. Raises TypeError if a field is not a text."""
        identifier = self.rollout.identifier(run)
        if identifier is not None:
            self.hash(identifier, marks)
        elif self.by_chance:
            at: i64 = 0
            while at < len(self.steps):
                marks[self.steps[at] & PLACE_MASK] |= CHANCE
                at += 1

    def share(self, step: i64) -> i64:
        steps = self.steps
        low: i64 = 0
        high: i64 = len(steps)
        while low < high:
            middle = (low + high) >> 1
            if steps[middle] & PLACE_MASK < step:
                low = middle + 1
            else:
                high = middle
        if low == len(steps) or steps[low] & PLACE_MASK != step:
            return -1
        return self.shared.numbers[(steps[low] >> NUMBERS) + 1] & SHARE_MASK

    def hash(self, identifier: Identifier, marks: vec[i32]) -> None:
        """Mark the steps whose rollout admits an identifier."""
        aligned = identifier.aligned(self.rollout.size & 3)
        numbers = self.shared.numbers
        blocks = aligned.blocks
        short = aligned.short
        head = aligned.head
        tail = aligned.tail
        length = identifier.size
        count: i64 = len(blocks)
        steps = self.steps
        end: i64 = len(steps)
        at: i64 = 0
        while at < end:
            step = steps[at]
            place = step >> NUMBERS
            prefix = numbers[place]
            packed = numbers[place + 1]
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
            bucket = finish(state ^ ((packed >> SIZE) + length)) % 100
            # the sign of the difference is the answer: a branch would be predicted wrongly too often
            marks[step & PLACE_MASK] |= i32(((bucket - (packed & SHARE_MASK)) >> SIGN) & ADMITTED)
            at += 1
