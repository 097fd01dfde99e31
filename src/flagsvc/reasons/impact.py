"""What a change of a strategy does to users: how many get the flag, how many lose it, and whether all are drawn again.

For rollouts this is arithmetic: every bucket has one percent of all identifiers, and two groups draw independently. No data of
users is needed. A request without an identifier is drawn each time, and no user notices a change of that.

For variants it is arithmetic, too: the range of buckets of each variant, and who gets another variant. The percentages are of the
users who are drawn: users in an override are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from flagsvc.engine.model import ConstraintSpec, SegmentSpec, StrategySpec, VariantSpec
from flagsvc.engine.operators import LISTS, OPERATORS
from flagsvc.engine.values import jsnumber
from flagsvc.reasons.words import (
    DEFAULT,
    RANDOM,
    ROLLOUTS,
    Rollout,
    constraint_words,
    rollout_of,
    segment_words,
    shorten,
    show,
)

USER_ID: Final = "userId"
HUNDRED: Final = 100
EVERYONE: Final = Rollout(HUNDRED, DEFAULT, "")
NO_USER: Final = Rollout(0, DEFAULT, "")
NEGATED: Final = "NOT_IN"
"""The operator that is true where its list does not have the value."""

SAME: Final = "same"
AGAIN: Final = "again"
CHANCE: Final = "chance"
UNKNOWN: Final = "unknown"

Key: TypeAlias = tuple[object, ...]


class ShareImpact(NamedTuple):
    """What a change of a rollout does. `gained` and `lost` are percentages of all identifiers, None if they are not known.

    `drawn` is SAME where every identifier keeps its bucket, AGAIN where all are drawn again, CHANCE where each request is drawn,
    and UNKNOWN for rules that are no rollouts. `may_gain` and `may_lose` tell whether any user may get it or lose it.
    """

    gained: float | None
    lost: float | None
    drawn: str
    may_gain: bool
    may_lose: bool


class Impact(NamedTuple):
    """What a change of a strategy does. `before` and `after` are the rollouts, None for other rules.

    `conditions` are sentences about changed conditions. `may_gain` and `may_lose` take them into account; false is never wrong.
    """

    before: Rollout | None
    after: Rollout | None
    share: ShareImpact
    conditions: tuple[str, ...]
    may_gain: bool
    may_lose: bool

    @property
    def is_exact(self) -> bool:
        """Whether the percentages are all that changes."""
        return self.share.gained is not None and not self.conditions

    def words(self) -> list[str]:
        """Return the change as sentences."""
        told = [*share_words(self), *self.conditions]
        if not self.may_gain and not self.may_lose:
            return [*told, "No user gets it or loses it by this."]
        if not self.may_lose:
            told.append("No user loses it.")
        if not self.may_gain:
            told.append("No user gets it who does not have it now.")
        return told


def impact_of(before: StrategySpec | None, after: StrategySpec | None, segments: Mapping[str, SegmentSpec] | None = None) -> Impact:
    """Return what it does to replace a strategy. None is no strategy, or a disabled one. `segments` are for the sentences."""
    old, new = as_rollout(before), as_rollout(after)
    share = share_impact(old, new) if old is not None and new is not None else rule_impact(before, after)
    changed = compare_conditions(before, after, segments or {}) if before is not None and after is not None else []
    return Impact(
        old,
        new,
        share,
        tuple([each.words for each in changed]),
        after is not None and (share.may_gain or any([each.wider for each in changed])),
        before is not None and (share.may_lose or any([each.narrower for each in changed])),
    )


def as_rollout(spec: StrategySpec | None) -> Rollout | None:
    """Return the rule of a strategy as a rollout; None if it is none. No strategy is one for no user."""
    if spec is None:
        return NO_USER
    if spec.name == DEFAULT:
        return EVERYONE
    return rollout_of(spec) if spec.name in ROLLOUTS else None


def rule_impact(before: StrategySpec | None, after: StrategySpec | None) -> ShareImpact:
    """Return the impact where a rule is no rollout: nothing if the rules are equal, else it is not known."""
    equal = before is not None and after is not None and rule_key(before) == rule_key(after)
    return ShareImpact(None, None, SAME if equal else UNKNOWN, not equal, not equal)


def rule_key(spec: StrategySpec) -> Key:
    """Return what is equal for equal rules."""
    return spec.name, *sorted(spec.parameters.items())


def share_impact(before: Rollout, after: Rollout) -> ShareImpact:
    old, new = before.share, after.share
    if before.sticks_to == after.sticks_to == RANDOM:
        return moved(before, after, CHANCE, old < HUNDRED and new > 0, old > 0 and new < HUNDRED)
    if before.group == after.group and before.sticks_to == after.sticks_to:
        return moved(before, after, SAME, new > old, old > new)
    if before.group == after.group and {before.sticks_to, after.sticks_to} == {DEFAULT, USER_ID}:
        narrower = before.sticks_to == DEFAULT and old > 0
        wider = after.sticks_to == DEFAULT and new > 0
        return moved(before, after, SAME, wider or new > old, narrower or old > new)
    full = before.sticks_to == after.sticks_to
    may_gain = new > 0 and not (is_everyone(before) or (full and old == HUNDRED))
    may_lose = old > 0 and not (is_everyone(after) or (full and new == HUNDRED))
    if min(old, new) == 0 or is_everyone(before) or is_everyone(after):
        return moved(before, after, SAME, may_gain, may_lose)
    return ShareImpact((HUNDRED - old) * new / HUNDRED, old * (HUNDRED - new) / HUNDRED, AGAIN, may_gain, may_lose)


def moved(before: Rollout, after: Rollout, drawn: str, may_gain: bool, may_lose: bool) -> ShareImpact:
    """Return the impact where the smaller share is a part of the larger one."""
    grown = after.share - before.share
    return ShareImpact(float(max(grown, 0)), float(max(-grown, 0)), drawn, may_gain, may_lose)


def is_everyone(rollout: Rollout) -> bool:
    """Return whether a rollout admits every context."""
    return rollout.share == HUNDRED and rollout.sticks_to in (DEFAULT, RANDOM)


def percent(share: float) -> str:
    return f"{jsnumber.to_text(round(share, 2))} %"


def share_words(impact: Impact) -> list[str]:
    """Return the change of the rollout as sentences."""
    share, before, after = impact.share, impact.before, impact.after
    if before is None or after is None or share.gained is None or share.lost is None:
        return ["The rule changes. Who gets it and who loses it depends on what contexts have."] * (share.drawn == UNKNOWN)
    of_users = (
        "of the requests"
        if RANDOM in (before.sticks_to, after.sticks_to)
        else f"of the users {by_words(after if is_drawn(after) else before)}"
    )
    told = []
    if share.drawn == AGAIN:
        told.append("All users are drawn again, because the group or what it sticks to changes.")
    if share.gained:
        told.append(f"{percent(share.gained)} {of_users} get it.")
    if share.lost:
        told.append(f"{percent(share.lost)} {of_users} lose it.")
    if share.drawn == SAME and before.sticks_to != after.sticks_to and min(before.share, after.share) > 0:
        told += stickiness_words(before, after)
    return told


def is_drawn(rollout: Rollout) -> bool:
    """Return whether a rollout looks at an identifier: it admits some, and not every context."""
    return rollout.share > 0 and not is_everyone(rollout)


def by_words(rollout: Rollout) -> str:
    """Return by what a rollout counts users."""
    return f"by {'userId or sessionId' if rollout.sticks_to == DEFAULT else show(rollout.sticks_to)}"


def stickiness_words(before: Rollout, after: Rollout) -> list[str]:
    """Return what happens to contexts without the field that only one of two rollouts needs.

    The other rollout is for everyone, or has default stickiness, where users with a `userId` keep their bucket.
    """
    if after.sticks_to not in (DEFAULT, RANDOM) and (after.sticks_to == USER_ID or is_everyone(before)):
        return [f"Those without {show(after.sticks_to)} lose it."]
    if before.sticks_to not in (DEFAULT, RANDOM) and (before.sticks_to == USER_ID or is_everyone(after)):
        return [f"Of those without {show(before.sticks_to)}, {percent(after.share)} get it."]
    return []


class ConditionChange(NamedTuple):
    """One changed condition as a sentence; `wider` and `narrower` tell whether it may admit more users, or fewer."""

    words: str
    wider: bool
    narrower: bool


def compare_conditions(before: StrategySpec, after: StrategySpec, segments: Mapping[str, SegmentSpec]) -> list[ConditionChange]:
    """Return the changes of constraints and segments. Their order does not matter, and neither do repeats."""
    old = {constraint_key(each): each for each in before.constraints}
    new = {constraint_key(each): each for each in after.constraints}
    gone = [each for key, each in old.items() if key not in new]
    come = [each for key, each in new.items() if key not in old]
    found: list[ConditionChange] = []
    for each in [*gone]:
        other = next((other for other in come if differ_in_lists(each, other)), None)
        if each is not None and other is not None:
            gone.remove(each)
            come.remove(other)
            found.append(compare_lists(each, other))
    found += [ConditionChange(f"Removed: {constraint_words(each)}.", True, False) for each in gone]
    found += [ConditionChange(f"Added: {constraint_words(each)}.", False, True) for each in come]
    return [*found, *compare_segments(before.segments, after.segments, segments)]


def constraint_key(spec: ConstraintSpec | None) -> Key:
    """Return what is equal for equal constraints; the order of values does not matter."""
    if spec is None:
        return ()
    head = constraint_head(spec)
    return (*head, frozenset(spec.values)) if has_list(spec) else (*head, *spec.single())


def constraint_head(spec: ConstraintSpec) -> Key:
    """Return what is equal for constraints that differ only in what they compare with."""
    return spec.field, spec.operator, spec.inverted, spec.insensitive


def has_list(spec: ConstraintSpec) -> bool:
    return spec.operator in OPERATORS and OPERATORS[spec.operator].takes in LISTS


def differ_in_lists(one: ConstraintSpec | None, other: ConstraintSpec | None) -> bool:
    if one is None or other is None:
        return False
    both = has_list(one) and has_list(other)
    return both and constraint_head(one) == constraint_head(other)


def compare_lists(before: ConstraintSpec, after: ConstraintSpec) -> ConditionChange:
    """Return the change of a list. A longer list admits more users, unless it names those who are left out."""
    old, new = dict.fromkeys(before.values), dict.fromkeys(after.values)
    added = [each for each in new if each not in old]
    removed = [each for each in old if each not in new]
    parts = [f"{len(added)} added ({shorten(added)})"] * bool(added)
    parts += [f"{len(removed)} removed ({shorten(removed)})"] * bool(removed)
    upright = before.inverted is (before.operator == NEGATED)
    words = f"{constraint_words(after)}: {', '.join(parts)}."
    wider, narrower = (added, removed) if upright else (removed, added)
    return ConditionChange(words, bool(wider), bool(narrower))


def compare_segments(before: Sequence[str], after: Sequence[str], segments: Mapping[str, SegmentSpec]) -> list[ConditionChange]:
    """Return the segments that were removed and added."""
    old, new = Counter(set(before)), Counter(set(after))
    gone = [f"Removed: {segment_words(segments.get(each), each)}." for each in sorted((old - new).elements())]
    come = [f"Added: {segment_words(segments.get(each), each)}." for each in sorted((new - old).elements())]
    return [
        *[ConditionChange(each, True, False) for each in gone],
        *[ConditionChange(each, False, True) for each in come],
    ]


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
    told += [f"The users of {show(each)} get another payload." for each in old if each in new and old[each] != new[each]]
    overrides = overrides_of(before), overrides_of(after)
    told += [OVERRIDES] * (overrides[0] != overrides[1])
    return told + [NOT_COUNTED] * (counted and any(overrides))


def shares(draw: Draw) -> dict[str, float]:
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
    """Return the moves where two draws are independent, or a side has no draw: the products of the shares."""
    old, new = shares(before), shares(after)
    return {(one, other): HUNDRED * left * right for one, left in old.items() for other, right in new.items() if one != other}
