"""From the model to the snapshot: everything the configuration decides is decided here, once.

Equal constraints and segments become one predicate; what can only come out one way becomes a constant; strategies behind one that
admits everyone are cut; every outcome of every toggle is encoded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import msgspec

from flagsvc.engine.features import DYNAMIC, FIRST_VARIANT, OFF, ON, Outcome, Parent, Toggle
from flagsvc.engine.fragments import fragment
from flagsvc.engine.model import ConstraintSpec, DependencySpec, DocumentSpec, FeatureSpec, Problem, StrategySpec
from flagsvc.engine.operators import compile_constraint
from flagsvc.engine.parse import parse_document
from flagsvc.engine.predicates import Always, Never, Predicate, Segment
from flagsvc.engine.reads import Reads
from flagsvc.engine.run import Memory
from flagsvc.engine.snapshot import Snapshot
from flagsvc.engine.strategies import BY_HOST, CustomStrategy, Everyone, Nobody, Strategy, StrategyOptions, compile_rule
from flagsvc.engine.variants import Choice, compile_choice
from flagsvc.errors import DocumentError


class CompileOptions:
    """What compiling needs beside the document.

    `hash_encoding` is `low-byte` or `utf8`; `hostname` this machine's name (strategy applicationHostname); `project` and
    `name_prefix` leave other features out; `fold` False keeps the nodes that the configuration decides, for explanations;
    `code_digest` stands for the custom code in the revision.
    """

    def __init__(
        self,
        *,
        hash_encoding: str = "low-byte",
        hostname: str = "",
        variant_feature_state: bool = False,
        custom_strategies: Mapping[str, CustomStrategy] | None = None,
        project: str | None = None,
        name_prefix: str | None = None,
        fold: bool = True,
        code_digest: str = "",
    ) -> None:
        self.hash_encoding = hash_encoding
        self.hostname = hostname
        self.variant_feature_state = variant_feature_state
        self.custom_strategies: Mapping[str, CustomStrategy] = {} if custom_strategies is None else custom_strategies
        self.project = project
        self.name_prefix = name_prefix
        self.fold = fold
        self.code_digest = code_digest

    def identity(self, by_host: bool) -> list[object]:
        """Return what of the options can change an answer; the host's name only where it counts, for replicas differ in it."""
        names = sorted(self.custom_strategies)
        hostname = self.hostname if by_host else ""
        state = [self.hash_encoding, hostname, self.variant_feature_state, self.project, self.name_prefix]
        return [*state, names, self.code_digest]


class Compiled:
    """A snapshot, and what of the document was malformed and left out."""

    def __init__(self, snapshot: Snapshot, problems: list[Problem]) -> None:
        self.snapshot = snapshot
        self.problems = problems


def compile_document(document: object, options: CompileOptions, previous: Snapshot | None = None) -> Compiled:
    """Return the snapshot of a decoded client-features document.

    Raises DocumentError when the document as a whole is not of the right shape or nested too deeply. When `previous` is of the
    same revision it is returned as it is.
    """
    try:
        spec = parse_document(document, options.project, options.name_prefix)
        revision = digest(document, options.identity(asks_for_host(spec)))
    except RecursionError:
        raise DocumentError("", "the document is nested too deeply") from None
    if previous is not None and previous.revision == revision:
        return Compiled(previous, spec.problems)
    return Compiled(Compiler(spec, options).snapshot(revision), spec.problems)


def asks_for_host(spec: DocumentSpec) -> bool:
    """Return whether a strategy of the document depends on the host this runs on."""
    features = spec.features.values()
    return any([strategy.name == BY_HOST for feature in features for strategy in feature.strategies])


def digest(document: object, identity: list[object]) -> str:
    """Return the revision: equal documents, options and custom code have the same one, in every process."""
    try:
        canonical = msgspec.json.encode([identity, document], order="deterministic")
    except (UnicodeEncodeError, OverflowError):
        canonical = json.dumps([identity, document], sort_keys=True).encode()
    return hashlib.blake2b(canonical, digest_size=16).hexdigest()


class Compiler:
    """Compiles one document; used once."""

    def __init__(self, spec: DocumentSpec, options: CompileOptions) -> None:
        self.spec = spec
        self.options = options
        self.utf8 = options.hash_encoding == "utf8"
        self.rules = StrategyOptions(self.utf8, options.hostname, options.custom_strategies)
        self.pool: dict[tuple[object, ...], Predicate] = {}
        self.uses: dict[tuple[object, ...], int] = {}
        self.reads = Reads()
        self.toggles: dict[str, Toggle] = {}

    def snapshot(self, revision: str) -> Snapshot:
        """Compile every feature, then the dependencies between them."""
        for feature in self.spec.features.values():
            self.toggles[feature.name] = self.toggle(feature)
        for feature in self.spec.features.values():
            self.depend(self.toggles[feature.name], feature.dependencies)
        shared = [self.pool[key] for key, count in self.uses.items() if count > 1]
        for slot, predicate in enumerate(shared):
            predicate.slot = slot
        parents = self.memoise_parents()
        memory = Memory(len(shared), parents, self.utf8)
        return Snapshot(revision, self.toggles, memory, self.reads, self.options.variant_feature_state)

    def toggle(self, feature: FeatureSpec) -> Toggle:
        """Return one feature's toggle, without its dependencies."""
        toggle = Toggle(feature.name, self.outcomes(feature))
        if not feature.enabled:
            toggle.constant = OFF
            toggle.reason = "the feature is disabled"
            return toggle
        stickiness = feature.variants[0].stickiness if feature.variants else None
        toggle.choice = self.noted(compile_choice(feature.variants, feature.name, stickiness, self.utf8))
        first = FIRST_VARIANT + len(feature.variants)
        for spec in feature.strategies:
            toggle.strategies.append(self.strategy(spec, first))
            first += len(spec.variants)
        if not feature.strategies:
            toggle.strategies.append(Everyone())
        if self.options.fold:
            fold(toggle)
        return toggle

    def outcomes(self, feature: FeatureSpec) -> list[Outcome]:
        """Return every way the feature can come out, in the order in which they are numbered.

        A disabled one has its variants too: a caller may still report one that it was given before.
        """
        state = self.options.variant_feature_state
        impression = feature.impression_data
        ways = [
            Outcome(False, None, fragment(feature.name, False, None, impression, state)),
            Outcome(True, None, fragment(feature.name, True, None, impression, state)),
        ]
        drawn = [*feature.variants, *[variant for strategy in feature.strategies for variant in strategy.variants]]
        for variant in drawn:
            ways.append(Outcome(True, variant.name, fragment(feature.name, True, variant, impression, state)))
        return ways

    def strategy(self, spec: StrategySpec, first: int) -> Strategy:
        """Return one compiled strategy; `first` is the number of its first variant's outcome."""
        strategy = compile_rule(spec, self.rules)
        self.reads.strategy(strategy)
        conditions = [self.constraint(constraint) for constraint in spec.constraints]
        conditions += [self.segment(identity) for identity in spec.segments]
        strategy.conditions = (
            conditions if not self.options.fold else [c for c in conditions if not isinstance(c, Always)]
        )
        if spec.variants:
            group = spec.parameters.get("groupId", "undefined")
            stickiness = spec.variants[0].stickiness or spec.parameters.get("stickiness")
            strategy.choice = self.noted(compile_choice(spec.variants, group, stickiness, self.utf8))
        strategy.first = first
        return strategy

    def noted(self, choice: Choice | None) -> Choice | None:
        """Note what a choice reads, and return it."""
        if choice is not None:
            self.reads.choice(choice)
        return choice

    def constraint(self, spec: ConstraintSpec | None) -> Predicate:
        """Return the predicate of a constraint: one for all that are equal."""
        if spec is None:
            return compile_constraint(None)
        return self.pooled(("constraint", *spec.key()), spec, "")

    def segment(self, identity: str) -> Predicate:
        """Return the predicate of a segment: one for all strategies that name it; a missing one holds for nobody."""
        if identity not in self.spec.segments:
            return Never(f"missing segment `{identity}`")
        return self.pooled(("segment", identity), None, identity)

    def pooled(self, key: tuple[object, ...], spec: ConstraintSpec | None, identity: str) -> Predicate:
        """Return the predicate known under the key, compiled when it is asked for first."""
        known = self.pool.get(key)
        if known is None:
            known = self.compiled_segment(identity) if spec is None else compile_constraint(spec)
            self.pool[key] = known
            self.reads.predicate(known)
        self.uses[key] = self.uses.get(key, 0) + 1
        return known

    def compiled_segment(self, identity: str) -> Predicate:
        """Return a segment's constraints as one predicate."""
        parts = [self.constraint(constraint) for constraint in self.spec.segments[identity]]
        if self.options.fold:
            parts = [part for part in parts if not isinstance(part, Always)]
            never = next((part for part in parts if isinstance(part, Never)), None)
            if never is not None:
                return Never(never.reason)
            if not parts:
                return Always()
        return Segment(identity, self.spec.segment_names.get(identity, ""), parts)

    def depend(self, toggle: Toggle, dependencies: list[DependencySpec]) -> None:
        """Tie a toggle to its parents: one that is missing or has parents itself makes the child off."""
        if not dependencies or (toggle.constant == OFF and self.options.fold):
            return
        for spec in dependencies:
            parent = self.toggles.get(spec.feature)
            if parent is None:
                turn_off(toggle, f"its parent `{spec.feature}` is missing")
                return
            if self.spec.features[spec.feature].dependencies:
                turn_off(toggle, f"its parent `{spec.feature}` has a parent itself")
                return
            toggle.parents.append(Parent(parent, [accepts(spec, outcome) for outcome in parent.outcomes]))
        settle(toggle, self.options.fold)

    def memoise_parents(self) -> int:
        """Give every toggle that others depend on a place in the run's memory; return how many there are."""
        count = 0
        for toggle in self.toggles.values():
            for parent in toggle.parents:
                if parent.toggle.memo < 0:
                    parent.toggle.memo = count
                    count += 1
        return count


def turn_off(toggle: Toggle, reason: str) -> None:
    """Make the toggle off for everyone."""
    toggle.parents = []
    toggle.constant = OFF
    toggle.reason = reason


def accepts(spec: DependencySpec, outcome: Outcome) -> bool:
    """Return whether an outcome of the parent satisfies the dependency (behaviour: Evaluation, Dependencies)."""
    if not spec.enabled:
        return not outcome.enabled
    if not spec.variants:
        return outcome.enabled
    return outcome.enabled and ("disabled" if outcome.variant is None else outcome.variant) in spec.variants


def settle(toggle: Toggle, folding: bool) -> None:
    """Decide at once about the parents that can only come out one way."""
    if not folding:
        return
    undecided: list[Parent] = []
    for parent in toggle.parents:
        if parent.toggle.constant == DYNAMIC:
            undecided.append(parent)
        elif parent.accepts[parent.toggle.constant] == 0:
            turn_off(toggle, f"its parent `{parent.toggle.name}` never comes out as it must")
            return
    toggle.parents = undecided
    if undecided:
        toggle.constant = DYNAMIC


def fold(toggle: Toggle) -> None:
    """Cut what can never decide, and make the toggle a constant where only one outcome is left."""
    reachable: list[Strategy] = []
    for strategy in toggle.strategies:
        if isinstance(strategy, Nobody) or any(isinstance(condition, Never) for condition in strategy.conditions):
            continue
        reachable.append(strategy)
        if isinstance(strategy, Everyone) and not strategy.conditions:
            break
    toggle.strategies = reachable
    if not reachable:
        toggle.constant = OFF
    elif isinstance(reachable[0], Everyone) and not reachable[0].conditions:
        toggle.constant = certain_outcome(toggle, reachable[0])


def certain_outcome(toggle: Toggle, strategy: Strategy) -> int:
    """Return the number of the outcome of a strategy that is always on, DYNAMIC where a variant is drawn."""
    if strategy.choice is not None:
        index = strategy.choice.certain()
        return DYNAMIC if index < 0 else int(strategy.first) + index
    if toggle.choice is not None:
        index = toggle.choice.certain()
        return DYNAMIC if index < 0 else FIRST_VARIANT + index
    return ON
