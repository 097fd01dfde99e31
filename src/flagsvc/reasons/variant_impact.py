"""What a change of variants does to users: which range of buckets each variant has, and who gets another one.

It is arithmetic: every bucket has the same share of all identifiers, and two groups draw independently. A request without an
identifier is drawn each time. The percentages are of the users who are drawn: those in an override are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from flagsvc.engine.model import VariantSpec
from flagsvc.reasons.impact import HUNDRED, USER_ID, percent
from flagsvc.reasons.words import DEFAULT, RANDOM, show

CHANCES: Final = {
    (False, True): "Each request is drawn by chance now, so that a user gets another variant each time.",
    (True, False): "Each user keeps one variant now. Before, each request was drawn by chance.",
}
"""Whether each request is drawn by chance before and after → what that change means."""
BY_CHANCE: Final = "Each request is drawn by chance, as before. Only the shares change."
WITHOUT_USER: Final = {
    (DEFAULT, USER_ID): "Those without userId are drawn by chance now, each time.",
    (USER_ID, DEFAULT): "Those without userId keep one variant now, by sessionId or address.",
}
"""What variants stick to before and after → what happens to contexts without a `userId`. All others keep their bucket."""
OVERRIDES: Final = "The overrides change: the users in them may get another variant."
NOT_COUNTED: Final = "Users in an override are not counted."


class Draw(NamedTuple):
    """The variants of a flag or a strategy, in order, the group that their draw mixes in, and the field that it sticks to."""

    variants: Sequence[VariantSpec]
    group: str
    sticks_to: str

    @property
    def total(self) -> int:
        """The number of buckets."""
        return sum([each.weight for each in self.variants])

    @property
    def is_drawn(self) -> bool:
        """Whether users get different variants."""
        return sum([each.weight > 0 for each in self.variants]) > 1

    @property
    def by_chance(self) -> bool:
        """Whether each request is drawn."""
        return self.is_drawn and self.sticks_to == RANDOM


class VariantImpact(NamedTuple):
    """What a change does.

    `again` tells that all users are drawn again, so that only chance leaves one with the same variant. `moves` has the percentage
    of users by the variants that they have before and after; nothing where requests are drawn by chance. `notes` are sentences
    about all else that changes.
    """

    again: bool
    moves: Mapping[tuple[str, str], float]
    notes: tuple[str, ...]

    def words(self) -> list[str]:
        """Return the change as sentences; none if nothing changes."""
        if self.again:
            share = percent(sum(self.moves.values()))
            return [f"All users are drawn again: {share} of them get another variant.", *self.notes]
        told = [
            f"{percent(share)} of the users with a variant change from {show(one)} to {show(other)}."
            for (one, other), share in self.moves.items()
        ]
        return [*told, *self.notes]


def variant_impact(before: Draw, after: Draw) -> VariantImpact:
    """Return what it does to users to replace variants. Without variants on one side no user changes from one to another."""
    chances = before.by_chance, after.by_chance
    drawn = before.is_drawn and after.is_drawn
    moves: Mapping[tuple[str, str], float] = {}
    if not any(chances):
        moves = _range_moves(before, after) if drawn and same_buckets(before, after) else _drawn_moves(before, after)
    again = drawn and not any(chances) and not same_buckets(before, after)
    return VariantImpact(again, moves, tuple(_notes(before, after, chances, counted=bool(moves))))


def same_buckets(before: Draw, after: Draw) -> bool:
    """Return whether each user with a `userId` keeps the bucket, and each other one, too, if the field stays."""
    fields = before.sticks_to, after.sticks_to
    same = before.sticks_to == after.sticks_to or fields in WITHOUT_USER
    return same and (before.group, before.total) == (after.group, after.total)


def _notes(before: Draw, after: Draw, chances: tuple[bool, bool], *, counted: bool) -> list[str]:
    """Return what else changes, as sentences. `counted` tells whether there are percentages of users."""
    told = [CHANCES[chances]] if chances in CHANCES else []
    told += [BY_CHANCE] * (all(chances) and shares(before) != shares(after))
    if before.is_drawn and after.is_drawn and same_buckets(before, after):
        told += [text for fields, text in WITHOUT_USER.items() if fields == (before.sticks_to, after.sticks_to)]
    old, new = ({each.name: each.payload for each in draw.variants} for draw in (before, after))
    told += [
        f"The users of {show(each)} get another payload." for each in old if each in new and old[each] != new[each]
    ]
    overrides = overrides_of(before), overrides_of(after)
    told += [OVERRIDES] * (overrides[0] != overrides[1])
    return told + [NOT_COUNTED] * (counted and any(overrides))


def shares(draw: Draw) -> dict[str, float]:
    """Return the share of each variant that has one."""
    total = draw.total
    return {each.name: each.weight / total for each in draw.variants if each.weight}


def ranges(draw: Draw) -> list[tuple[int, int]]:
    """Return the first and the last bucket of each variant, counted from 1. A variant without a weight ends before it begins."""
    found = []
    last = 0
    for each in draw.variants:
        found.append((last + 1, last + each.weight))
        last += each.weight
    return found


def range_words(draw: Draw) -> list[str]:
    """Return the range of each variant as a sentence: `blue: 50 %, buckets 1 to 500 of 1000`."""
    told = []
    total = draw.total
    for each, (first, last) in zip(draw.variants, ranges(draw), strict=True):
        share = percent(HUNDRED * each.weight / total) if total else percent(0)
        buckets = f", buckets {first} to {last} of {total}" if each.weight else ", no user"
        told.append(f"{show(each.name)}: {share}{buckets}")
    return told


def overrides_of(draw: Draw) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return the overrides of each variant that has some."""
    return {
        each.name: [(override.field, tuple(override.values)) for override in each.overrides]
        for each in draw.variants
        if each.overrides
    }


def _range_moves(before: Draw, after: Draw) -> dict[tuple[str, str], float]:
    """Return the moves where every user keeps the bucket: the overlaps of the ranges of two variants."""
    total = before.total
    old, new = (
        [(each.name, *place) for each, place in zip(draw.variants, ranges(draw), strict=True) if each.weight]
        for draw in (before, after)
    )
    return {
        (one, other): HUNDRED * shared / total
        for one, first, last in old
        for other, low, high in new
        if one != other and (shared := min(last, high) - max(first, low) + 1) > 0
    }


def _drawn_moves(before: Draw, after: Draw) -> dict[tuple[str, str], float]:
    """Return the moves where two draws are independent, or one of them is none: the products of the shares."""
    old, new = shares(before), shares(after)
    return {
        (one, other): HUNDRED * left * right
        for one, left in old.items()
        for other, right in new.items()
        if one != other
    }
