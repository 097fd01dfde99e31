"""The compiled parts of a document: one for each feature and segment, shared by every snapshot with that feature.

A part depends only on its own bytes, its segments and the options. It does not depend on its place, on other parts or on the
snapshot. Objects that several parts have in common are in a pool.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from flagsvc.core.errors import DocumentError
from flagsvc.engine.digest import digest
from flagsvc.engine.features import FIRST_VARIANT, Toggle, ToggleOutcome
from flagsvc.engine.fragments import fragment
from flagsvc.engine.model import (
    ConstraintSpec,
    DependencySpec,
    DocumentProblem,
    FeatureSpec,
    SegmentSpec,
    StrategySpec,
    VariantSpec,
)
from flagsvc.engine.operators import compile_constraint
from flagsvc.engine.options import CompileOptions
from flagsvc.engine.parse import is_included, parse_feature, parse_segment
from flagsvc.engine.predicates import NO_SLOT, Always, Never, Predicate, SegmentPredicate
from flagsvc.engine.reading import Oddities
from flagsvc.engine.reads import Reads
from flagsvc.engine.strategies import BY_HOST, CompiledStrategy, Everyone, StrategyOptions, compile_rule
from flagsvc.engine.variants import VariantChoice, compile_choice

PLACE: Final = "@"
"""Stands for the place in the document, in the path of a part's problem."""

DISABLED: Final = "the feature is disabled"

MISSING: Final = b""
"""Stands for the digest of a segment that is not in the document."""


@mypyc_attr(acyclic=True)
class SegmentPart:
    """One segment. For a malformed one `spec` is None, and `problem` says why. An odd one has both."""

    def __init__(self, content: bytes, spec: SegmentSpec | None, problem: DocumentProblem | None) -> None:
        self.digest = content
        self.spec = spec
        self.problem = problem


@mypyc_attr(acyclic=True)
class Part:
    """One feature. `included` tells whether it passes the filters. Of a malformed or odd feature, `problem` says what is wrong.

    `toggle` is None if the feature is malformed or not included. `segments` are its segments with their digests, `variants` the
    names of its variants. `project` is the id of its project; empty if the feature has none.
    """

    def __init__(self, content: bytes) -> None:
        self.digest = content
        self.included = True
        self.project = ""
        self.problem: DocumentProblem | None = None
        self.toggle: Toggle | None = None
        self.variants: frozenset[str] = frozenset()
        self.dependencies: tuple[DependencySpec, ...] = ()
        self.segments: tuple[tuple[str, bytes], ...] = ()
        self.reads: Reads | None = None
        self.by_host = False

    def shared(self) -> Toggle:
        """Return the toggle. It must exist."""
        assert self.toggle is not None
        return self.toggle


@mypyc_attr(acyclic=True)
class Pool:
    """The objects that the parts of one lineage share: equal predicates, equal sets of variant names, equal reads.

    `slots` is the number of predicates that more than one strategy uses; a slot is never released. `compiled` is the number of
    features that were compiled with this pool.
    """

    def __init__(self) -> None:
        self.predicates: dict[tuple[object, ...], Predicate] = {}
        self.names: dict[frozenset[str], frozenset[str]] = {}
        self.reads: dict[tuple[object, ...], Reads] = {}
        self.slots: i64 = 0
        self.compiled: i64 = 0

    def share(self, predicate: Predicate) -> None:
        """Give the predicate a slot in the memory of runs, if it has none yet."""
        if predicate.slot == NO_SLOT:
            predicate.slot = self.slots
            self.slots += 1


class Lineage:
    """The parts that the next configuration can reuse: the sources in their order, and the part of each."""

    def __init__(self, options: CompileOptions, pool: Pool, raw: bool) -> None:
        self.options = options
        self.pool = pool
        self.raw = raw
        self.sources: list[object] = []
        self.parts: list[Part] = []
        self.segment_sources: list[object] = []
        self.segment_parts: list[SegmentPart] = []


def segment_part(raw: object) -> SegmentPart:
    content = digest(raw)
    odd = Oddities()
    try:
        return SegmentPart(content, parse_segment(raw, PLACE, odd), oddity(odd, None))
    except DocumentError as error:
        return SegmentPart(content, None, DocumentProblem(error.path, None, error.message))


def oddity(odd: Oddities, toggle: str | None) -> DocumentProblem | None:
    """Return the problem of a part that is served although a value in it is odd; None if none is."""
    return None if odd.first is None else DocumentProblem(odd.first.path, toggle, odd.first.message, served=True)


class Maker:
    """Compiles features, one after the other. `segments` are the document's segments by identity."""

    def __init__(self, options: CompileOptions, pool: Pool, segments: dict[str, SegmentPart]) -> None:
        self.options = options
        self.pool = pool
        self.segments = segments
        self.utf8 = options.hash_encoding == "utf8"
        self.rules = StrategyOptions(self.utf8, options.hostname, options.custom_strategies)
        # segments that were compiled before a feature used them, by their keys in the pool
        self.ready: dict[tuple[object, ...], Predicate] = {}

    def part(self, raw: object) -> Part:
        """Return the part of a decoded feature."""
        part = self.start_part(raw, digest(raw))
        if part.included:
            self.complete(part, raw)
        return part

    def start_part(self, raw: object, content: bytes) -> Part:
        """Return a new part for a decoded feature with this digest. Only `included` and `project` are set."""
        part = Part(content)
        self.pool.compiled += 1
        part.included = is_included(raw, self.options.project, self.options.name_prefix)
        project = raw.get("project") if isinstance(raw, dict) else None
        part.project = project if isinstance(project, str) else ""
        return part

    def complete(self, part: Part, raw: object) -> None:
        """Parse and compile the decoded feature of a part."""
        odd = Oddities()
        try:
            spec = parse_feature(raw, PLACE, odd)
        except DocumentError as error:
            name = raw.get("name") if isinstance(raw, dict) else None
            part.problem = DocumentProblem(error.path, name if isinstance(name, str) else None, error.message)
            return
        self.fill(part, spec, self.toggle(spec), odd)

    def fill(self, part: Part, spec: FeatureSpec, toggle: Toggle, odd: Oddities) -> None:
        """Put the compiled feature into its part."""
        part.problem = oddity(odd, spec.name)
        names = frozenset([outcome.variant or "" for outcome in toggle.outcomes if outcome.variant is not None])
        names |= {"disabled"}
        part.toggle = toggle
        part.variants = self.pool.names.setdefault(names, names)
        part.dependencies = tuple(spec.dependencies)
        part.segments = self.named_segments(spec)
        part.reads = self.read(toggle)
        for strategy in spec.strategies:
            part.by_host = part.by_host or strategy.name == BY_HOST

    def named_segments(self, spec: FeatureSpec) -> tuple[tuple[str, bytes], ...]:
        """Return the segments that the feature's strategies name, with their digests."""
        return tuple([(identity, self.content(identity)) for strategy in spec.strategies for identity in strategy.segments])

    def content(self, identity: str) -> bytes:
        """Return the digest of a segment; MISSING if there is none."""
        segment = self.segments.get(identity)
        return MISSING if segment is None else segment.digest

    def is_current(self, part: Part) -> bool:
        """Return whether a part of another snapshot was compiled with the same segments."""
        for identity, content in part.segments:
            if self.content(identity) != content:
                return False
        return True

    def read(self, toggle: Toggle) -> Reads | None:
        """Return what an evaluation of the toggle reads; None for nothing. Toggles that read the same share one object."""
        if toggle.constant >= 0:
            return None
        reads = Reads()
        # strategies may share a segment, and one may list it many times
        read: set[int] = set()
        for strategy in toggle.strategies:
            reads.strategy(strategy)
            for condition in strategy.conditions:
                if id(condition) not in read:
                    read.add(id(condition))
                    reads.predicate(condition)
            if strategy.choice is not None:
                reads.choice(strategy.choice)
        if toggle.choice is not None:
            reads.choice(toggle.choice)
        return self.pool.reads.setdefault(reads.key(), reads)

    def toggle(self, feature: FeatureSpec) -> Toggle:
        """Return one feature's toggle, without its dependencies."""
        toggle = Toggle(feature.name, self.outcomes(feature))
        if not feature.enabled:
            toggle.turn_off(DISABLED)
            return toggle
        toggle.choice = self.choice(feature)
        first = FIRST_VARIANT + len(feature.variants)
        strategies: list[CompiledStrategy] = []
        for spec in feature.strategies:
            strategies.append(self.strategy(spec, first))
            first += len(spec.variants)
        self.finish(toggle, strategies)
        return toggle

    def choice(self, feature: FeatureSpec) -> VariantChoice | None:
        """Return the draw among the feature's own variants; None without variants."""
        stickiness = feature.variants[0].stickiness if feature.variants else None
        return compile_choice(feature.variants, feature.name, stickiness, self.utf8)

    def finish(self, toggle: Toggle, strategies: list[CompiledStrategy]) -> None:
        """Add the strategies of an enabled toggle. Without strategies it is on for everyone."""
        toggle.apply(strategies or [Everyone()])
        if self.options.fold:
            toggle.fold()

    def outcomes(self, feature: FeatureSpec) -> list[ToggleOutcome]:
        """Return every outcome of the feature, in the order of their numbers.

        A disabled feature has its variants too, because a caller may still report a variant from before.
        """
        ways = self.plain_outcomes(feature)
        for variant in feature.variants:
            ways.append(self.variant_outcome(feature, variant))
        for strategy in feature.strategies:
            for variant in strategy.variants:
                ways.append(self.variant_outcome(feature, variant))
        return ways

    def plain_outcomes(self, feature: FeatureSpec) -> list[ToggleOutcome]:
        """Return the outcomes of the feature without a variant."""
        state = self.options.variant_feature_state
        impression = feature.impression_data
        return [
            ToggleOutcome(False, None, fragment(feature.name, False, None, impression, state)),
            ToggleOutcome(True, None, fragment(feature.name, True, None, impression, state)),
        ]

    def variant_outcome(self, feature: FeatureSpec, variant: VariantSpec) -> ToggleOutcome:
        state = self.options.variant_feature_state
        return ToggleOutcome(True, variant.name, fragment(feature.name, True, variant, feature.impression_data, state))

    def strategy(self, spec: StrategySpec, first: int) -> CompiledStrategy:
        """Return one compiled strategy. `first` is the number of its first variant's outcome."""
        strategy = self.rule(spec, first)
        for constraint in spec.constraints:
            self.condition(strategy, self.constraint(constraint))
        for identity in spec.segments:
            self.condition(strategy, self.segment(identity))
        return strategy

    def rule(self, spec: StrategySpec, first: int) -> CompiledStrategy:
        """Return one compiled strategy without its conditions."""
        strategy = compile_rule(spec, self.rules)
        if spec.variants:
            stickiness = spec.variants[0].stickiness or spec.stickiness
            strategy.choice = compile_choice(spec.variants, spec.group, stickiness, self.utf8)
        strategy.first = first
        return strategy

    def condition(self, strategy: CompiledStrategy, condition: Predicate) -> None:
        """Add a condition to a strategy. A condition that always holds is added only for explanations."""
        if not self.options.fold or not isinstance(condition, Always):
            strategy.require(condition)

    def constraint(self, spec: ConstraintSpec | None) -> Predicate:
        """Return the predicate of a constraint. Equal constraints share one."""
        if spec is None:
            return compile_constraint(None)
        key = ("constraint", *spec.key())
        known = self.pool.predicates.get(key)
        if known is None:
            known = compile_constraint(spec)
            self.pool.predicates[key] = known
        else:
            self.pool.share(known)
        return known

    def segment(self, identity: str) -> Predicate:
        """Return the predicate of a segment, which all its strategies share. A missing segment never holds."""
        found = self.segments.get(identity)
        spec = None if found is None else found.spec
        if found is None or spec is None:
            return Never(f"missing segment `{identity}`")
        key = segment_key(found)
        known = self.pool.predicates.get(key)
        if known is None:
            known = self.ready.pop(key, None)
            if known is None:
                parts = [self.constraint(constraint) for constraint in spec.constraints]
                known = self.compiled_segment(spec, parts)
            self.pool.predicates[key] = known
        else:
            self.pool.share(known)
        return known

    def compiled_segment(self, spec: SegmentSpec, parts: list[Predicate]) -> Predicate:
        """Return a segment's compiled constraints as one predicate."""
        if self.options.fold:
            parts = [part for part in parts if not isinstance(part, Always)]
            for part in parts:
                if isinstance(part, Never):
                    return Never(part.reason)
            if not parts:
                return Always()
        return SegmentPredicate(spec.identity, spec.name, parts)


def segment_key(part: SegmentPart) -> tuple[object, ...]:
    """Return the key in the pool of a segment's predicate."""
    assert part.spec is not None
    return ("segment", part.spec.identity, part.digest)
