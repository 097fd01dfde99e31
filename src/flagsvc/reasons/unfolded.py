"""A document as a whole explanation needs it: each feature's model beside its nodes, none left out, with titles and ids.

The snapshot that answers requests keeps none of this. A feature is unfolded when it is asked for, and kept.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import Compiled, CompileOptions, compile_document
from flagsvc.engine.model import FeatureSpec, SegmentSpec, StrategySpec
from flagsvc.engine.parse import is_included, name_of, parse_feature
from flagsvc.engine.parts import PLACE, Maker, Pool, SegmentPart, segment_part
from flagsvc.engine.source import source_of
from flagsvc.engine.strategies import CompiledStrategy, compile_rule
from flagsvc.engine.variants import VariantChoice
from flagsvc.reasons.words import ROLLOUTS, is_disabled

PROBE_SHARE: Final = "50"
"""A share that neither admits nor refuses everyone, so that the rule keeps its hash."""


class UnfoldedStrategy(NamedTuple):
    """One strategy: what the document says of it, and its node. `probe` is the rollout with another share, None for other rules."""

    spec: StrategySpec
    identity: str | None
    title: str | None
    disabled: bool
    node: CompiledStrategy
    probe: CompiledStrategy | None


class UnfoldedFeature(NamedTuple):
    """One feature, and the draw of its own variants."""

    spec: FeatureSpec
    strategies: tuple[UnfoldedStrategy, ...]
    choice: VariantChoice | None


class Unfolded:
    """A document, unfolded. `compiled` is its snapshot with the problems, for evaluations; `segments` are by identity.

    With the `compiled` of a document, its parts may be added one by one, segments first. Raises DocumentError if the document is
    none.
    """

    def __init__(self, document: object, options: CompileOptions, compiled: Compiled | None = None) -> None:
        self.compiled: Compiled = compile_document(document, options) if compiled is None else compiled
        self.options = options
        self.segment_parts: dict[str, SegmentPart] = {}
        self.segments: dict[str, SegmentSpec] = {}
        self.maker = Maker(unfolding(options), Pool(), self.segment_parts)
        self.raw: dict[str, list[object]] = {}
        self.known: dict[str, UnfoldedFeature | None] = {}
        parts = source_of(document)
        for raw in parts.segments:
            self.add_segment(raw)
        for raw in parts.features:
            self.add_feature(raw)

    def add_segment(self, raw: object) -> None:
        """Add a decoded segment. One that is malformed is missing."""
        self.add_segment_part(segment_part(raw))

    def add_segment_part(self, segment: SegmentPart) -> None:
        """Add a segment that is parsed already."""
        if segment.spec is not None:
            self.segment_parts[segment.spec.identity] = segment
            self.segments[segment.spec.identity] = segment.spec

    def add_feature(self, raw: object) -> None:
        """Add a decoded feature, if it has a name and belongs to the project and the prefix of the options."""
        name = name_of(raw) if isinstance(raw, dict) else ""
        if name and is_included(raw, self.options.project, self.options.name_prefix):
            self.raw.setdefault(name, []).append(raw)

    @property
    def names(self) -> list[str]:
        """The names of the features, in the order of the answers."""
        return list(self.compiled.snapshot.toggles)

    def feature(self, name: str) -> UnfoldedFeature | None:
        """Return a feature by its name; None if it is not in the document. Of equal names the last well-formed one counts."""
        if name not in self.known:
            found = [parsed(raw) for raw in reversed(self.raw.get(name, []))]
            self.known[name] = next(
                (self.unfold(spec, raw) for spec, raw in found if spec is not None),
                None,
            )
        return self.known[name]

    def unfold(self, spec: FeatureSpec, raw: dict[str, object]) -> UnfoldedFeature:
        """Return a feature with the nodes of its strategies."""
        listed = raw.get("strategies")
        items = listed if isinstance(listed, list) else []
        pairs = zip(spec.strategies, [item if isinstance(item, dict) else {} for item in items], strict=True)
        return UnfoldedFeature(spec, tuple([self.strategy(each, item) for each, item in pairs]), self.maker.choice(spec))

    def strategy(self, spec: StrategySpec, raw: dict[str, object]) -> UnfoldedStrategy:
        identity, title = raw.get("id"), raw.get("title")
        return UnfoldedStrategy(
            spec,
            identity if isinstance(identity, str) else None,
            title if isinstance(title, str) else None,
            is_disabled(raw),
            self.maker.strategy(spec, 0),
            self.probe(spec),
        )

    def probe(self, spec: StrategySpec) -> CompiledStrategy | None:
        """Return the rollout of a strategy with PROBE_SHARE, which knows its bucket; None for another rule."""
        if spec.name not in ROLLOUTS or spec.name in self.options.custom_strategies:
            return None
        return self.with_share(spec, PROBE_SHARE)

    def with_share(self, spec: StrategySpec, share: str) -> CompiledStrategy:
        """Return the rule of a strategy of ROLLOUTS with another share."""
        changed = {**spec.parameters, ROLLOUTS[spec.name].parameter: share}
        return compile_rule(StrategySpec(spec.path, spec.name, changed, [], [], []), self.maker.rules)


def unfolding(options: CompileOptions) -> CompileOptions:
    """Return the options for nodes of which none is left out."""
    return CompileOptions(
        hash_encoding=options.hash_encoding,
        hostname=options.hostname,
        custom_strategies=options.custom_strategies,
        fold=False,
    )


def parsed(raw: object) -> tuple[FeatureSpec | None, dict[str, object]]:
    """Return a feature's model, None if it is malformed, and the feature."""
    assert isinstance(raw, dict)
    try:
        return parse_feature(raw, PLACE), raw
    except DocumentError:
        return None, raw
