"""The parts of a context that a configuration reads: fields, moments in time, random draws.

The compiler collects them for each feature and merges them. `canonical.py` derives the cache key of an answer from them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.engine.context import WIRE_NAMES, Context
from flagsvc.engine.predicates import DateComparison, FieldPredicate, Predicate, SegmentPredicate
from flagsvc.engine.strategies import (
    Addresses,
    CompiledStrategy,
    Custom,
    DefaultRollout,
    RandomShare,
    StickyRollout,
    UserIds,
)
from flagsvc.engine.variants import VariantChoice

NEVER: Final = -1
"""The position of a time that is not a number."""


class Reads:
    """The parts of a context that one feature, or all features, read.

    `fields` are read by their wire names; each of `needed` is drawn at random where it is absent or empty. `moments` are what date
    constraints compare the time with (epoch milliseconds). `rollouts` and `draws` tell of default stickiness in a rollout and in
    the draw of a variant. `any_field`: a custom strategy does not declare what it reads; `custom`: there is a custom strategy.
    `random`: each request draws a new random number; `impure`: a custom strategy may answer differently for equal input.
    """

    def __init__(self) -> None:
        self.fields: set[str] = set()
        self.needed: set[str] = set()
        self.moments: set[float] = set()
        self.rollouts = False
        self.draws = False
        self.any_field = False
        self.custom = False
        self.random = False
        self.impure = False

    def key(self) -> tuple[object, ...]:
        """Return a key that is equal for features that read the same, so that they can share one `Reads`."""
        flags = (self.rollouts, self.draws, self.any_field, self.custom, self.random, self.impure)
        return (frozenset(self.fields), frozenset(self.needed), frozenset(self.moments), flags)

    def merge(self, other: Reads) -> None:
        """Add what `other` reads."""
        self.fields |= other.fields
        self.needed |= other.needed
        self.moments |= other.moments
        self.rollouts = self.rollouts or other.rollouts
        self.draws = self.draws or other.draws
        self.any_field = self.any_field or other.any_field
        self.custom = self.custom or other.custom
        self.random = self.random or other.random
        self.impure = self.impure or other.impure

    def predicate(self, predicate: Predicate) -> None:
        if isinstance(predicate, SegmentPredicate):
            self.fields |= predicate.fields
            self.moments |= predicate.moments
        elif isinstance(predicate, DateComparison):
            self.moments.add(predicate.value)
        elif isinstance(predicate, FieldPredicate):
            self.fields.add(predicate.name)

    def strategy(self, strategy: CompiledStrategy) -> None:
        """Add what a strategy's rule reads."""
        if isinstance(strategy, RandomShare):
            self.random = True
        elif isinstance(strategy, DefaultRollout):
            self.rollouts = True
        elif isinstance(strategy, StickyRollout):
            self.fields.add(strategy.field)
        elif isinstance(strategy, UserIds):
            self.fields.add("userId")
        elif isinstance(strategy, Addresses):
            self.fields.add("remoteAddress")
        elif isinstance(strategy, Custom):
            self.add_declared_reads(strategy)

    def add_declared_reads(self, strategy: Custom) -> None:
        """Add what a custom strategy declares: `pure`, and the fields in `reads`."""
        self.custom = True
        reads = getattr(strategy.implementation, "reads", None)
        if reads is None or "properties" in reads:
            # `properties` is the object that holds them all, so any of them may be read
            self.any_field = True
        else:
            self.fields.update(reads)
            # the name of an attribute of the context means its field
            self.fields.update([WIRE_NAMES[name] for name in reads if name in WIRE_NAMES])
        if not getattr(strategy.implementation, "pure", False):
            self.impure = True

    def choice(self, choice: VariantChoice) -> None:
        """Add the fields that the choice of a variant reads. If only one variant has a weight, nothing is drawn."""
        for override in choice.overrides:
            self.fields.add(override.field)
        if choice.only >= 0:
            return
        if choice.by_default:
            self.draws = True
        else:
            self.fields.add(choice.field)
            self.needed.add(choice.field)


class Moments:
    """The moments that date constraints compare the time with (epoch milliseconds), in their order.

    Two times at the same position compare alike with each of them.
    """

    def __init__(self, values: set[float]) -> None:
        self.values: list[float] = sorted(values)
        self.exist: bool = len(values) > 0

    def position(self, context: Context) -> i64:
        """Return twice the number of moments before the time of an evaluation, one more if it is the next one; else NEVER."""
        given = context.current_time
        time = context.now if given is None else given
        if time != time:
            return NEVER
        low: i64 = 0
        high: i64 = len(self.values)
        while low < high:
            middle = (low + high) >> 1
            if self.values[middle] < time:
                low = middle + 1
            else:
                high = middle
        if low < len(self.values) and self.values[low] == time:
            return 2 * low + 1
        return 2 * low
