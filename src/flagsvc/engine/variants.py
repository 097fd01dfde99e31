"""Drawing a variant: overrides first, then a bucket over the weights (specification: Variant; behaviour: Evaluation)."""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.context import FIELDS, PROPERTY, REMOTE_ADDRESS
from flagsvc.engine.hashing import VARIANT_SEED, Identifier, Prefix
from flagsvc.engine.model import VariantSpec
from flagsvc.engine.run import Run
from flagsvc.engine.weights import Weights, is_plain

NONE: Final = -1
UNEVEN: Final = -2
"""No variant is the only one, and the weights are not whole numbers."""
HASHES: Final = 2**32


@mypyc_attr(acyclic=True)
class Override:
    """Gives the variant at `index` to a context that has one of the values in the field."""

    def __init__(self, field: str, values: frozenset[str], index: int) -> None:
        self.kind: i64 = FIELDS.get(field, PROPERTY)
        self.field = field
        self.values = values
        self.index: i64 = index

    def matches(self, run: Run) -> bool:
        """Return whether the field holds one of the values."""
        value = run.context.read(self.kind, self.field)
        return value is not None and value in self.values


@mypyc_attr(acyclic=True)
class VariantChoice:
    """The compiled variants of a feature or a strategy, of which at least one has a weight."""

    def __init__(self, variants: list[VariantSpec], prefix: Prefix, stickiness: str, uneven: Weights | None = None) -> None:
        weighted = [at for at, variant in enumerate(variants) if variant.weight != 0]
        self.total: i64 = sum([variant.weight for variant in variants])
        self.indexes: vec[i64] = vec[i64](weighted)
        self.limits: vec[i64] = vec[i64](running_sums([variants[at].weight for at in weighted]))
        self.overrides = [
            Override(override.field, frozenset(override.values), at)
            for at, variant in enumerate(variants)
            for override in variant.overrides
        ]
        self.prefix = prefix
        self.by_default: bool = stickiness == "default"
        self.kind: i64 = FIELDS.get(stickiness, PROPERTY)
        self.field = stickiness
        # the only variant with a weight: nothing is drawn
        self.only: i64 = weighted[0] if len(weighted) == 1 else NONE
        self.uneven = uneven
        if uneven is not None:
            self.only = UNEVEN

    def constant_index(self) -> int:
        """Return the index of the variant that every context gets, or NONE if it depends on the context."""
        return NONE if self.overrides or self.only < 0 else int(self.only)

    def identifier(self, run: Run) -> Identifier | None:
        """Return the identifier for the draw, by default userId, sessionId or remoteAddress. None means a random draw."""
        if not self.by_default:
            return run.identify(self.kind, self.field)
        found = run.user_or_session()
        if found is None and run.context.remote_address:
            return run.identify(REMOTE_ADDRESS, "remoteAddress")
        return found

    def pick(self, run: Run) -> i64:
        """Return the index of the variant for this run; NONE if its weights are uneven and leave a share without a variant."""
        for override in self.overrides:
            if override.matches(run):
                return override.index
        if self.only != NONE:
            return self.only if self.only >= 0 else self.pick_uneven(run)
        identifier = self.identifier(run)
        target = run.draw(self.total) if identifier is None else self.prefix.bucket(identifier, self.total)
        # the last limit is the total, so that some limit is always reached
        limits = self.limits
        at: i64 = 0
        while limits[at] < target:
            at += 1
        return self.indexes[at]

    def pick_uneven(self, run: Run) -> i64:
        """Return the index of the variant for this run by weights that are not whole numbers."""
        uneven = self.uneven
        assert uneven is not None
        identifier = self.identifier(run)
        bucket = run.draw(HASHES) if identifier is None else self.prefix.bucket(identifier, HASHES)
        return uneven.draw(bucket - 1)


def running_sums(weights: list[int]) -> list[int]:
    """Return the sums of the first one, two, three … weights."""
    sums: list[int] = []
    total = 0
    for weight in weights:
        total += weight
        sums.append(total)
    return sums


def compile_choice(variants: list[VariantSpec], group: str, stickiness: str | None, utf8: bool) -> VariantChoice | None:
    """Return the compiled choice of a variant, or None if the weights add up to nothing. Stickiness None means `default`."""
    uneven: Weights | None = None
    if not all([is_plain(variant.stated) for variant in variants]):
        weights = Weights([variant.stated for variant in variants])
        uneven = None if weights.is_whole() else weights
    if uneven is None and sum([variant.weight for variant in variants]) <= 0:
        return None
    prefix = Prefix(group, VARIANT_SEED, utf8)
    return VariantChoice(variants, prefix, "default" if stickiness is None else stickiness, uneven)
