"""Compiles a document into a snapshot. Everything that the configuration alone decides is decided here, once.

Equal constraints and segments become one predicate. A toggle with a single possible outcome becomes a constant. Strategies after
one that admits everyone are removed. Every outcome of every toggle is encoded. An unchanged feature is reused from the previous
snapshot. The work can be done in slices, while the previous snapshot still answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from flagsvc.core.errors import DocumentError
from flagsvc.engine.changes import NOT_THERE, UNREAD, Matcher
from flagsvc.engine.classes.store import class_lists
from flagsvc.engine.dependencies import DependencyLinker
from flagsvc.engine.digest import canonical, combined
from flagsvc.engine.features import Toggle
from flagsvc.engine.fragments import PLAIN
from flagsvc.engine.lists import ListViews, ListViewsBuilder
from flagsvc.engine.model import DocumentProblem
from flagsvc.engine.options import CompileOptions as CompileOptions
from flagsvc.engine.parts import PLACE, Lineage, Maker, Part, Pool, SegmentPart, segment_part
from flagsvc.engine.reads import Reads
from flagsvc.engine.run import Memory
from flagsvc.engine.sliced_compilation import LargeFeature, LargeSegment, StepwiseCompiler, is_large
from flagsvc.engine.snapshot import Snapshot
from flagsvc.engine.source import DocumentParts, Unusual, source_of, split

UNLIMITED: Final = 1 << 60
"""A budget larger than the cost of any document."""

# the costs of work, in the time that compiling one byte of a feature takes
REUSE_COST: Final = 24
READ_COST: Final = 16
LINK_COST: Final = 60
LIST_COST: Final = 24
JOIN_COST: Final = 16
DECODED_COST: Final = 350

POOL_ALLOWANCE: Final = 200
"""Features that a pool may compile beyond twice the size of the document, before it is replaced."""


class Compiled:
    """A snapshot, and the problems of the document: the malformed parts that are left out, and the odd ones that are served."""

    def __init__(self, snapshot: Snapshot, problems: list[DocumentProblem]) -> None:
        self.snapshot = snapshot
        self.problems = problems


def compile_document(document: object, options: CompileOptions, previous: Snapshot | None = None) -> Compiled:
    """Return the snapshot of a decoded client-features document.

    If `previous` has the same revision, it is returned unchanged. Raises DocumentError if the whole document has the wrong
    shape or is nested too deeply.
    """
    compilation = Compilation(source_of(document), options, previous)
    compilation.advance(UNLIMITED)
    return compilation.compiled()


class Compiler:
    """Compiles documents with one set of options: at once, or in slices with `begin` and `begin_text`."""

    def __init__(self, options: CompileOptions) -> None:
        self.options = options

    def __call__(self, document: object, previous: Snapshot | None = None) -> Compiled:
        """Return what `compile_document` does."""
        return compile_document(document, self.options, previous)

    def begin(self, document: object, previous: Snapshot | None) -> Compilation:
        """Return the compilation of a decoded document. Raises DocumentError as `compile_document` does."""
        return Compilation(source_of(document), self.options, previous)

    def begin_text(self, text: bytes, previous: Snapshot | None) -> Compilation | None:
        """Return the compilation of a document's JSON, which decodes only changed parts; None if the document is unusual.

        Later, `advance` may still raise `Unusual`, if the document must be decoded as a whole.
        """
        source = split(text)
        return None if source is None else Compilation(source, self.options, previous)


class Compilation:
    """The compilation of one document in slices. It is used once.

    When it is done, `included` has the features that pass the filters, unchanged. `excluded_count` is the number of other
    features.
    """

    def __init__(self, source: DocumentParts, options: CompileOptions, previous: Snapshot | None = None) -> None:
        self.source = source
        self.options = options
        self.previous = previous
        self.known = reusable_lineage(source, options, previous)
        self.lineage = Lineage(options, self.known.pool, source.raw)
        self.segments: dict[str, SegmentPart] = {}
        self.large_segments: list[SegmentPart] = []
        self.parts: dict[str, Part] = {}
        self.problems: list[DocumentProblem] = []
        self.included: list[object] = []
        self.excluded_count = 0
        self.digests: list[bytes] = []
        self.by_host = False
        self.snapshot: Snapshot | None = None
        self.steps = self.work()

    def advance(self, budget: int) -> bool:
        """Do work worth about `budget` bytes of new features, and return whether everything is done.

        Raises DocumentError for a document that is nested too deeply. If the document is not decoded yet, that and any
        error of decoding raise Unusual. After either, the compilation cannot be used any more.
        """
        try:
            for cost in self.steps:
                budget -= cost
                if budget <= 0:
                    return False
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            if self.source.raw:
                raise Unusual from None
            raise DocumentError("", "the document is nested too deeply") from None
        return True

    def close(self) -> None:
        """Give up. The steps refer to the compilation, and it to them, so that the collector alone would release what there is."""
        nothing: list[int] = []
        self.steps = iter(nothing)

    def compiled(self) -> Compiled:
        """Return the snapshot and the problems, once everything is done."""
        assert self.snapshot is not None
        return Compiled(self.snapshot, self.problems)

    def work(self) -> Iterator[int]:
        """Compile the document and yield the cost of each step."""
        yield from self.take_segments()
        maker = Maker(self.options, self.known.pool, self.segments)
        for large in self.large_segments:
            yield from StepwiseCompiler(maker).segment_steps(large)
        yield from self.take_features(maker)
        if not self.reuse_previous():
            yield from self.assemble()

    def take_segments(self) -> Iterator[int]:
        """Reuse or parse each segment, and yield the costs."""
        segments = Matcher(self.known.segment_sources, self.source.segments)
        for index, item in enumerate(self.source.segments):
            place = segments.find(index)
            if place == UNREAD:
                for count in segments.read():
                    yield READ_COST * count
                place = segments.find(index)
            part = None if place == NOT_THERE else self.known.segment_parts[place]
            cost = REUSE_COST
            if part is None and is_large(item):
                large = LargeSegment(item)
                yield from large.steps()
                part = large.part
                assert part is not None
                self.large_segments.append(part)
            elif part is None:
                part = segment_part(self.source.decoded(item))
                cost += size_of(item)
            self.add_segment(index, part)
            yield cost

    def add_segment(self, index: int, part: SegmentPart) -> None:
        """Add a segment. Of equal ids the last one counts."""
        self.lineage.segment_sources.append(self.source.segments[index])
        self.lineage.segment_parts.append(part)
        self.add_problem(part.problem, f"segments[{index}]")
        if part.spec is not None:
            self.segments[part.spec.identity] = part

    def take_features(self, maker: Maker) -> Iterator[int]:
        """Reuse or compile each feature, and yield the costs."""
        features = Matcher(self.known.sources, self.source.features)
        for index, item in enumerate(self.source.features):
            place = features.find(index)
            if place == UNREAD:
                for count in features.read():
                    yield READ_COST * count
                place = features.find(index)
            part = None if place == NOT_THERE else self.known.parts[place]
            cost = REUSE_COST
            if part is None or not maker.is_current(part):
                if is_large(item):
                    large = LargeFeature(maker, item)
                    yield from large.steps()
                    part = large.part
                    assert part is not None
                else:
                    part = maker.part(self.source.decoded(item))
                    cost += size_of(item)
            self.add_feature(index, part)
            yield cost

    def add_feature(self, index: int, part: Part) -> None:
        """Add a feature. Of equal names the last one counts, at the place of the first."""
        item = self.source.features[index]
        self.lineage.sources.append(item)
        self.lineage.parts.append(part)
        self.add_problem(part.problem, f"features[{index}]")
        if part.included:
            self.included.append(item)
            self.digests.append(part.digest)
            self.by_host = self.by_host or part.by_host
        else:
            self.excluded_count += 1
        if part.toggle is not None:
            self.parts[part.toggle.name] = part

    def add_problem(self, problem: DocumentProblem | None, place: str) -> None:
        """Record the problem of a part, with its path in this document."""
        if problem is not None:
            path = place + problem.path.removeprefix(PLACE)
            self.problems.append(DocumentProblem(path, problem.toggle, problem.message, problem.served))

    def reuse_previous(self) -> bool:
        """Keep the previous snapshot if its revision is equal, and return whether it is."""
        previous = self.previous
        self.revision = self.digest()
        if previous is None or previous.revision != self.revision:
            return False
        if self.source.raw and previous.lineage.options is self.options:
            # the next document is compared with the spelling of this one
            previous.lineage = self.lineage
        self.snapshot = previous
        return True

    def digest(self) -> str:
        """Return the revision. It is the same in every process for equal documents, options and custom code."""
        segments = [part.digest for part in self.lineage.segment_parts]
        identity = canonical(self.options.identity(self.by_host))
        return combined([identity, b"".join(self.digests), b"".join(segments)])

    def assemble(self) -> Iterator[int]:
        """Link the parts to each other, build the snapshot, and yield the costs."""
        linker = DependencyLinker(self.parts, self.options.fold)
        parts = list(self.parts.values())
        for part in parts:
            if part.dependencies:
                linker.link_parents(part)
                yield LINK_COST
        toggles: dict[str, Toggle] = {}
        names: dict[str, frozenset[str]] = {}
        reads = Reads()
        merged: set[int] = set()
        for part in parts:
            toggle = linker.toggle(part)
            toggles[toggle.name] = toggle
            names[toggle.name] = part.variants
            # a toggle that its dependencies turned off never evaluates its strategies
            if part.reads is not None and toggle.constant < 0 and id(part.reads) not in merged:
                merged.add(id(part.reads))
                reads.merge(part.reads)
            yield LIST_COST
        views: dict[bytes, ListViews] = {}
        known = [ListViews(PLAIN, [], [], "")] if self.previous is None else list(self.previous.views.values())
        for view in known:
            builder = ListViewsBuilder(view.shape, view, toggles)
            for toggle in toggles.values():
                builder.add(toggle)
                yield 2 * JOIN_COST
            views[view.shape.name] = builder.finish()
        pool = self.known.pool
        memory = Memory(int(pool.slots), linker.memo_count, self.options.hash_encoding == "utf8")
        former = None if self.previous is None else self.previous.lists
        # with `lists = Lists(memory)` instead, each toggle of a list is evaluated, and nothing uses the package `classes`
        lists = yield from class_lists(memory, self.options, toggles, reads.moments, views, former)
        self.snapshot = Snapshot(
            self.revision,
            toggles,
            names,
            views,
            memory,
            reads,
            self.options.variant_feature_state,
            self.lineage,
            lists,
        )


def reusable_lineage(source: DocumentParts, options: CompileOptions, previous: Snapshot | None) -> Lineage:
    """Return the lineage to reuse. Return an empty one if none can be reused or too many of its entries are obsolete."""
    if previous is not None and source.raw:
        lineage = previous.lineage
        young = lineage.pool.compiled <= 2 * len(source.features) + POOL_ALLOWANCE
        if young and lineage.raw and lineage.options is options:
            return lineage
    return Lineage(options, Pool(), source.raw)


def size_of(item: object) -> int:
    """Return the cost of decoding and compiling a piece: its bytes; for a decoded piece, that of a typical one."""
    return len(memoryview(item)) if isinstance(item, msgspec.Raw) else DECODED_COST
