"""What a change of variants does to users: which range of buckets each variant has, and who gets another one.

It is arithmetic: every bucket has the same share of all identifiers, and two groups draw independently. A request without an
identifier is drawn each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from flagsvc.engine.model import VariantSpec
from flagsvc.engine.values import jsnumber
from flagsvc.reasons.words import show

HUNDRED: Final = 100
DEFAULT, RANDOM = "default", "random"


CHANCES: Final = {
    (False, True): "Each request is drawn by chance now, so that a user gets another variant each time.",
    (True, False): "Each user keeps one variant now. Before, each request was drawn by chance.",
}
"""Whether each request is drawn by chance before and after → what that change means."""


class Draw(NamedTuple):
    """The variants of a flag or a strategy, in order, and the group that their draw mixes in."""

    variants: Sequence[VariantSpec]
    group: str

    @property
    def total(self) -> int:
        """The number of buckets."""
        return sum([each.weight for each in self.variants])

    @property
    def sticks_to(self) -> str:
        """The field that decides who gets which variant."""
        return (self.variants[0].stickiness if self.variants else None) or DEFAULT


class VariantImpact(NamedTuple):
    """What a change does. `moves` has the percentage of users by the variants that they have before and after.

    `again` tells that all are drawn again, so that only chance leaves a user with the same variant. `by_chance` tells whether each
    request is drawn, before and after.
    """

    again: bool
    by_chance: tuple[bool, bool]
    moves: Mapping[tuple[str, str], float]
    payloads: tuple[str, ...]
    overrides: bool

    def words(self) -> list[str]:
        """Return the change as sentences; none if nothing changes."""
        told = [CHANCES[self.by_chance]] if self.by_chance in CHANCES else []
        who = "requests" if self.by_chance == (True, True) else "users"
        if self.again and not told:
            told.append(f"All users are drawn again: {percent(sum(self.moves.values()))} of them get another variant.")
        elif not told:
            moves = self.moves.items()
            told += [f"{percent(share)} of the {who} change from {show(a)} to {show(b)}." for (a, b), share in moves]
        told += [f"The users of {show(name)} get another payload." for name in self.payloads]
        if self.overrides:
            told.append("The overrides change: the users whom they name may get another variant.")
        return told


def percent(share: float) -> str:
    """Return a percentage as a text."""
    return f"{jsnumber.to_text(round(share, 2))} %"


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
    for each, (first, last) in zip(draw.variants, ranges(draw), strict=True):
        share = percent(HUNDRED * each.weight / draw.total) if draw.total else percent(0)
        buckets = f", buckets {first} to {last} of {draw.total}" if each.weight else ", no user"
        told.append(f"{show(each.name)}: {share}{buckets}")
    return told


def variant_impact(before: Draw, after: Draw) -> VariantImpact:
    """Return what it does to users to replace variants. Both have variants with a weight, or nothing can be drawn again."""
    keys = [(each.group, each.sticks_to, each.total) for each in (before, after)]
    chances = before.sticks_to == RANDOM, after.sticks_to == RANDOM
    again = bool(before.total and after.total) and keys[0] != keys[1] and chances != (True, True)
    old, new = ({each.name: each for each in draw.variants} for draw in (before, after))
    both = [name for name in old if name in new]
    return VariantImpact(
        again,
        chances,
        _drawn_moves(before, after) if again else _range_moves(before, after),
        tuple([name for name in both if old[name].payload != new[name].payload]),
        overrides_of(before) != overrides_of(after),
    )


def overrides_of(draw: Draw) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return the overrides of each variant that has some."""
    return {
        each.name: [(override.field, tuple(override.values)) for override in each.overrides]
        for each in draw.variants
        if each.overrides
    }


def _range_moves(before: Draw, after: Draw) -> dict[tuple[str, str], float]:
    """Return the moves where every user keeps the bucket: the overlaps of the ranges of two variants."""
    return {
        (one.name, other.name): HUNDRED * shared / before.total
        for one, (first, last) in zip(before.variants, ranges(before), strict=True)
        for other, (low, high) in zip(after.variants, ranges(after), strict=True)
        if one.name != other.name and (shared := min(last, high) - max(first, low) + 1) > 0
    }


def _drawn_moves(before: Draw, after: Draw) -> dict[tuple[str, str], float]:
    """Return the moves where two draws are independent: the products of the shares."""
    return {
        (one.name, other.name): HUNDRED * one.weight * other.weight / (before.total * after.total)
        for one in before.variants
        for other in after.variants
        if one.name != other.name and one.weight and other.weight
    }
