"""Decodes and compiles large features and segments in slices, because doing it at once would delay requests.

The result equals that of `Maker.part` and `segment_part`. The same functions are called for a few constraints, values or variants
at a time. Those two also compile a malformed one, so that its problem is reported in the same words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from flagsvc.core.errors import DocumentError
from flagsvc.engine.digest import SIZE
from flagsvc.engine.features import FIRST_VARIANT, Toggle, ToggleOutcome
from flagsvc.engine.model import ConstraintSpec, FeatureSpec, SegmentSpec, StrategySpec, VariantSpec
from flagsvc.engine.operators import NETWORKS, OPERATORS
from flagsvc.engine.parse import (
    add_variant,
    check_repeats,
    parse_constraint,
    parse_dependency,
    parse_feature,
    parse_item,
    parse_segment,
    parse_strategy,
    set_weights,
)
from flagsvc.engine.parts import DISABLED, PLACE, Maker, Part, SegmentPart, oddity, segment_key, segment_part
from flagsvc.engine.predicates import Predicate
from flagsvc.engine.reading import SCALAR, Oddities, as_object
from flagsvc.engine.strategies import CompiledStrategy
from flagsvc.engine.values.cidr import AddressList, CidrSet
from flagsvc.engine.values.text import split_list

STEP: Final = 2_048
"""The cost of a step, in the time that compiling one byte of a feature takes."""

# the costs of work
READING: Final = 4
"""Bytes that are decoded for a cost of 1."""
PIECE: Final = 40
"""What a piece costs that is decoded alone, beside its bytes."""
SPLITTING: Final = 64
"""Bytes that are split into pieces, hashed or copied for a cost of 1."""
HASHED: Final = STEP * SPLITTING

OBJECT: Final[Any] = dict[str, msgspec.Raw]
LIST: Final[Any] = list[msgspec.Raw]
DEPTH: Final = 6
"""The depth to which a piece is split: down to the values of a feature's constraints."""


class PieceReading:
    """Decodes a piece of JSON, and makes its digest. `value` and `content` are set after the last step."""

    def __init__(self, item: object) -> None:
        self.item = item
        self.value: object = None
        self.content = b""
        self.hash: Any = hashlib.blake2b(digest_size=SIZE)

    def steps(self) -> Iterator[int]:
        """Yield the cost of each step. Raises msgspec.MsgspecError or UnicodeDecodeError, as decoding does."""
        box: dict[str, object] = {}
        yield from self.read(self.item, DEPTH, box, "")
        self.value = box[""]
        self.content = self.hash.digest()

    def read(self, item: object, depth: int, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store the decoded value of a piece under a key of its owner."""
        opening = opening_of(item)
        size = len(memoryview(item))  # type: ignore[arg-type]
        if size <= STEP * READING:
            owner[key] = self.decoded(item)
            yield PIECE + size // READING
        elif depth == 0 or opening not in ("{", "[{", "[["):
            yield from self.read_whole(item, owner, key)
        elif opening == "{":
            yield from self.read_object(item, depth, owner, key)
        else:
            yield from self.read_list(item, depth, owner, key)

    def read_whole(self, item: object, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store the decoded value of a piece that cannot be split: a long text or a list of texts."""
        value: object = msgspec.json.decode(item)  # type: ignore[call-overload]
        owner[key] = value
        yield STEP
        text = encoded(value)
        yield STEP
        for at in range(0, len(text), HASHED):
            self.hash.update(text[at : at + HASHED])
            yield STEP

    def read_object(self, item: object, depth: int, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store an object under a key of its owner, property by property in the order of the canonical form."""
        pieces: dict[str, object] = msgspec.json.decode(item, type=OBJECT)  # type: ignore[call-overload]
        yield len(memoryview(item)) // SPLITTING  # type: ignore[arg-type]
        found: dict[str, object] = dict.fromkeys(pieces)
        self.hash.update(b"{")
        mark = b""
        for name in sorted(pieces):
            self.hash.update(mark + msgspec.json.encode(name) + b":")
            yield from self.read(pieces[name], depth - 1, found, name)
            mark = b","
        self.hash.update(b"}")
        owner[key] = found

    def read_list(self, item: object, depth: int, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store a list under a key of its owner, one large item or a few small ones at a time."""
        pieces: list[object] = msgspec.json.decode(item, type=LIST)  # type: ignore[call-overload]
        yield len(memoryview(item)) // SPLITTING  # type: ignore[arg-type]
        found: list[object] = []
        box: dict[str, object] = {}
        self.hash.update(b"[")
        mark = b""
        at = 0
        while at < len(pieces):
            self.hash.update(mark)
            end = end_of_batch(pieces, at)
            if end == at:
                yield from self.read(pieces[at], depth - 1, box, "")
                found.append(box[""])
                at += 1
            else:
                yield self.read_few(pieces[at:end], found)
                at = end
            mark = b","
        self.hash.update(b"]")
        owner[key] = found

    def read_few(self, pieces: list[object], found: list[object]) -> int:
        """Decode some items of a list, add them, and return the cost."""
        text = b"[" + b",".join(pieces) + b"]"  # type: ignore[arg-type]
        values: list[object] = msgspec.json.decode(text)
        self.hash.update(encoded(values)[1:-1])
        found += values
        return len(text) // READING

    def decoded(self, item: object) -> object:
        value: object = msgspec.json.decode(item)  # type: ignore[call-overload]
        self.hash.update(encoded(value))
        return value


def encoded(value: object) -> bytes:
    """Return the canonical form of a value from the strict decoder, which needs no other encoder."""
    return msgspec.json.encode(value, order="deterministic")


def opening_of(item: object) -> str:
    """Return the beginning of a piece of JSON; of a list also the beginning of its first item."""
    head = memoryview(item)[:64].tobytes()  # type: ignore[arg-type]
    return (head[:1] + head[1:].lstrip()[:1]).decode("latin-1") if head[:1] == b"[" else head[:1].decode("latin-1")


def end_of_batch(pieces: list[object], at: int) -> int:
    """Return the end of the small pieces from `at` on that are decoded in one call; `at` if that is a large piece."""
    size = 0
    end = at
    while end < len(pieces):
        size += len(memoryview(pieces[end]))  # type: ignore[arg-type]
        if size > STEP * READING:
            break
        end += 1
    return end


LARGE: Final = 12_288
"""A feature or segment of more bytes is compiled in slices."""
PATTERNED: Final = b'"REGEX"'
"""So is what may have patterns: each can take a quarter of a second."""

# the costs of work, in the unit of STEP
CONSTRAINT: Final = 60
VALUE: Final = 5
STRATEGY: Final = 120
VARIANT: Final = 60
SEGMENT: Final = 10
NETWORK: Final = 20
PATTERN: Final = 2 * STEP
VALUES: Final = STEP // VALUE
"""Values of a constraint that are parsed at once."""
ADDRESSES: Final = STEP // NETWORK
"""Addresses of a list that are read at once."""
SETS: Final = frozenset([name for name, operator in OPERATORS.items() if operator.as_set])
"""Operators whose values become a set."""
NETWORK_SETS: Final = frozenset([name for name, operator in OPERATORS.items() if operator.takes == NETWORKS])
"""Operators whose values become networks."""

DONE: Final = -1
FAILED: Final = -2


class StepwiseParser:
    """Parses a decoded value in steps, and releases it step by step. After the last step `feature` or `segment` is set.

    The steps raise DocumentError for malformed values.
    """

    def __init__(self, raw: object) -> None:
        self.raw = raw
        self.odd = Oddities()
        self.feature: FeatureSpec | None = None
        self.segment: SegmentSpec | None = None
        # the work since the last step
        self.cost = 0

    def feature_steps(self) -> Iterator[int]:
        raw = as_object(self.raw, PLACE)
        feature = parse_feature(without_items(raw, "strategies", "variants", "dependencies"), PLACE, self.odd)
        for at, item in enumerate(items_of(raw, "strategies")):
            yield from self.strategy(item, f"{PLACE}.strategies[{at}]", feature.strategies)
        yield from self.variants(items_of(raw, "variants"), PLACE, feature.variants)
        for at, item in enumerate(items_of(raw, "dependencies")):
            feature.dependencies.append(parse_dependency(item, f"{PLACE}.dependencies[{at}]", self.odd))
            self.cost += VARIANT
            if self.cost >= STEP:
                yield self.take_cost()
        check_repeats(feature, PLACE)
        self.feature = feature
        yield self.take_cost()

    def segment_steps(self) -> Iterator[int]:
        raw = as_object(self.raw, PLACE)
        segment = parse_segment(without_items(raw, "constraints"), PLACE, self.odd)
        yield from self.constraints(items_of(raw, "constraints"), PLACE, segment.constraints)
        self.segment = segment
        yield self.take_cost()

    def take_cost(self) -> int:
        """Return the cost since the last step, and reset it."""
        cost = self.cost
        self.cost = 0
        return cost

    def strategy(self, item: object, path: str, found: list[StrategySpec]) -> Iterator[int]:
        raw = item if isinstance(item, dict) else {}
        short = without_items(raw, "constraints", "variants") if isinstance(item, dict) else item
        strategy = parse_strategy(short, path, self.odd)
        found.append(strategy)
        self.cost += STRATEGY + SEGMENT * len(strategy.segments)
        yield from self.constraints(items_of(raw, "constraints"), path, strategy.constraints)
        yield from self.variants(items_of(raw, "variants"), path, strategy.variants)
        if self.cost >= STEP:
            yield self.take_cost()

    def variants(self, items: list[object], path: str, found: list[VariantSpec]) -> Iterator[int]:
        for at, item in enumerate(items):
            add_variant(found, item, f"{path}.variants[{at}]", self.odd)
            self.cost += VARIANT
            if self.cost >= STEP:
                yield self.take_cost()
        set_weights(found)

    def constraints(self, items: list[object], path: str, found: list[ConstraintSpec | None]) -> Iterator[int]:
        for at, item in enumerate(items):
            place = f"{path}.constraints[{at}]"
            values = items_of(item, "values") if isinstance(item, dict) else []
            if len(values) > VALUES:
                yield from self.long_constraint(as_object(item, place), values, place, found)
            else:
                found.append(parse_item(item, place, self.odd))
                self.cost += VALUE * len(values)
            self.cost += CONSTRAINT
            items[at] = None
            if self.cost >= STEP:
                yield self.take_cost()

    def long_constraint(
        self, raw: dict[str, object], values: list[object], path: str, found: list[ConstraintSpec | None]
    ) -> Iterator[int]:
        """Parse a constraint with many values."""
        constraint = parse_constraint(without_items(raw, "values"), path, self.odd)
        members: set[str] | None = set() if constraint.operator in SETS else None
        networks = CidrSet([]) if constraint.operator in NETWORK_SETS else None
        texts: list[str] = []
        for at in range(0, len(values), VALUES):
            piece = parse_constraint({"values": values[at : at + VALUES]}, path)
            some = piece.values
            texts += some
            if piece.unreadable and not constraint.unreadable:
                constraint.unreadable = True
                self.note_values(values[at : at + VALUES], at, path)
            if members is not None:
                members.update(some)
            elif networks is not None:
                yield VALUES * NETWORK
                networks.add(list(some))
            yield STEP
        constraint.values = tuple(texts)
        constraint.members = members
        constraint.networks = networks
        found.append(constraint)

    def note_values(self, values: list[object], first: int, path: str) -> None:
        """Note the first of some values that is no text, number or boolean. `first` is the place of the first value."""
        at = [isinstance(item, (list, dict)) for item in values].index(True)
        self.odd.add(f"{path}.values[{first + at}]", SCALAR, values[at])


def items_of(owner: dict[str, object], key: str) -> list[object]:
    """Return the list under `key`; empty if there is none."""
    raw = owner.get(key)
    return raw if isinstance(raw, list) else []


def without_items(owner: dict[str, object], *keys: str) -> dict[str, object]:
    """Return a copy in which the lists under these keys are empty."""
    nothing: list[object] = []
    short = dict(owner)
    for key in keys:
        if isinstance(short.get(key), list):
            short[key] = nothing
    return short


def is_large(item: object) -> bool:
    """Return whether a feature or segment is compiled in slices. One that is decoded already is not."""
    if not isinstance(item, msgspec.Raw):
        return False
    return len(memoryview(item)) > LARGE or PATTERNED in bytes(item)


class LargeFeature:
    """Makes the part of a feature from its JSON. `part` is set after the last step."""

    def __init__(self, maker: Maker, item: object) -> None:
        self.maker = maker
        self.item = item
        self.part: Part | None = None

    def steps(self) -> Iterator[int]:
        """Yield the cost of each step. Raises msgspec.MsgspecError or UnicodeDecodeError, as decoding does."""
        reading = PieceReading(self.item)
        yield from reading.steps()
        self.part = self.maker.start_part(reading.value, reading.content)
        if self.part.included:
            yield from self.complete(self.part, reading.value)

    def complete(self, part: Part, raw: object) -> Iterator[int]:
        """Parse and compile the decoded feature, as `Maker.complete` does."""
        parser = StepwiseParser(raw)
        steps = parser.feature_steps()
        cost = 0
        while cost >= 0:
            yield cost
            cost = step(steps)
        feature = parser.feature
        if feature is None:
            self.maker.complete(part, msgspec.json.decode(self.item))  # type: ignore[call-overload]
            return
        compiler = StepwiseCompiler(self.maker)
        yield from compiler.toggle_steps(feature)
        self.maker.fill(part, feature, compiler.compiled_toggle(), parser.odd)
        yield STEP


class LargeSegment:
    """Makes the part of a segment from its JSON. `part` is set after the last step."""

    def __init__(self, item: object) -> None:
        self.item = item
        self.part: SegmentPart | None = None

    def steps(self) -> Iterator[int]:
        """Yield the cost of each step. Raises msgspec.MsgspecError or UnicodeDecodeError, as decoding does."""
        reading = PieceReading(self.item)
        yield from reading.steps()
        parser = StepwiseParser(reading.value)
        steps = parser.segment_steps()
        cost = 0
        while cost >= 0:
            yield cost
            cost = step(steps)
        if parser.segment is None:
            self.part = segment_part(msgspec.json.decode(self.item))  # type: ignore[call-overload]
        else:
            self.part = SegmentPart(reading.content, parser.segment, oddity(parser.odd, None))


def step(work: Iterator[int]) -> int:
    """Return the cost of the next step of parsing; DONE after the last one, FAILED for a malformed value."""
    try:
        return next(work, DONE)
    except DocumentError:
        return FAILED


class StepwiseCompiler:
    """Compiles a parsed feature in steps with the functions of a maker. After the last step `toggle` is set."""

    def __init__(self, maker: Maker) -> None:
        self.maker = maker
        self.toggle: Toggle | None = None
        self.cost = 0

    def compiled_toggle(self) -> Toggle:
        assert self.toggle is not None
        return self.toggle

    def toggle_steps(self, feature: FeatureSpec) -> Iterator[int]:
        """Compile a feature, as `Maker.toggle` does."""
        maker = self.maker
        toggle = Toggle(feature.name, maker.plain_outcomes(feature))
        self.toggle = toggle
        yield from self.outcomes(feature, toggle.outcomes)
        if not feature.enabled:
            toggle.turn_off(DISABLED)
            return
        toggle.choice = maker.choice(feature)
        first = FIRST_VARIANT + len(feature.variants)
        strategies: list[CompiledStrategy] = []
        for spec in feature.strategies:
            yield from self.addresses(spec)
            strategy = maker.rule(spec, first)
            first += len(spec.variants)
            # a rule hashes its group, and splits its list
            self.cost += STRATEGY + sum([len(text) for text in spec.parameters.values()])
            yield from self.conditions(spec, strategy)
            strategies.append(strategy)
            if self.cost >= STEP:
                yield self.take_cost()
        maker.finish(toggle, strategies)
        yield STEP

    def addresses(self, spec: StrategySpec) -> Iterator[int]:
        """Read the addresses of a long list."""
        listed = spec.parameters.get("IPs", "")
        if spec.name != "remoteAddress" or len(listed) <= STEP:
            return
        values = split_list(listed)
        found = AddressList([])
        for at in range(0, len(values), ADDRESSES):
            found.add(values[at : at + ADDRESSES])
            yield STEP
        spec.addresses = found

    def outcomes(self, feature: FeatureSpec, found: list[ToggleOutcome]) -> Iterator[int]:
        """Add the outcomes of the variants, as `Maker.outcomes` does."""
        yield from self.add_variant_outcomes(feature, feature.variants, found)
        for strategy in feature.strategies:
            yield from self.add_variant_outcomes(feature, strategy.variants, found)

    def add_variant_outcomes(self, feature: FeatureSpec, variants: list[VariantSpec], found: list[ToggleOutcome]) -> Iterator[int]:
        for variant in variants:
            found.append(self.maker.variant_outcome(feature, variant))
            self.cost += VARIANT
            if self.cost >= STEP:
                yield self.take_cost()

    def take_cost(self) -> int:
        """Return the cost since the last step, and reset it."""
        cost = self.cost
        self.cost = 0
        return cost

    def conditions(self, spec: StrategySpec, strategy: CompiledStrategy) -> Iterator[int]:
        """Add the conditions of a strategy, as `Maker.strategy` does."""
        for at, constraint in enumerate(spec.constraints):
            self.maker.condition(strategy, self.compile_constraint(constraint))
            spec.constraints[at] = None  # releases memory in steps as small
            if self.cost >= STEP:
                yield self.take_cost()
        for identity in spec.segments:
            self.maker.condition(strategy, self.maker.segment(identity))
            self.cost += SEGMENT
            if self.cost >= STEP:
                yield self.take_cost()

    def compile_constraint(self, spec: ConstraintSpec | None) -> Predicate:
        if spec is not None:
            self.cost += len(spec.values) + (PATTERN if spec.operator == "REGEX" else 0)
            self.cost += len(spec.value) if isinstance(spec.value, str) else 0
        self.cost += CONSTRAINT
        return self.maker.constraint(spec)

    def segment_steps(self, part: SegmentPart) -> Iterator[int]:
        """Compile a segment before a feature uses it."""
        spec = part.spec
        if spec is None or self.maker.segments[spec.identity] is not part:
            return  # malformed, or not the last one of its id
        if segment_key(part) in self.maker.pool.predicates:
            return
        parts: list[Predicate] = []
        for constraint in spec.constraints:
            parts.append(self.compile_constraint(constraint))
            if self.cost >= STEP:
                yield self.take_cost()
        self.maker.ready[segment_key(part)] = self.maker.compiled_segment(spec, parts)
        yield self.take_cost()
