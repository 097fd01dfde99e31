"""The changes of one field that turn an answer: `with region eu it would be on`.

Where all failing conditions of a strategy are about one field, values near the conditions' values are tried. Each is evaluated,
and only a change that turned the answer is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from flagsvc.engine.context import FIELDS, PROPERTY, WIRE_NAMES, Context
from flagsvc.engine.model import ConstraintSpec, StrategySpec
from flagsvc.engine.operators import (
    DATE,
    NETWORKS,
    NUMBER,
    OPERATORS,
    PATTERN,
    TEXTS,
    VERSION,
    date_value,
    number_value,
    text_value,
)
from flagsvc.engine.run import Memory, Run
from flagsvc.engine.snapshot import Snapshot
from flagsvc.engine.strategies import Custom, StickyRollout
from flagsvc.engine.values import jsdate, jsnumber
from flagsvc.engine.values.semver import parse as parse_semver
from flagsvc.reasons.conditions import CURRENT_TIME, RULE
from flagsvc.reasons.steps import (
    DependencyStep,
    FieldChange,
    RolloutChange,
    RolloutStep,
    StrategyStep,
    ToggleStep,
    WholeExplanation,
)
from flagsvc.reasons.unfolded import Unfolded, UnfoldedStrategy
from flagsvc.reasons.words import LISTED, listed_values, show, show_moment

TRIED: Final = 8
"""Values of a list that are tried."""
SEEDS: Final = (1, 2, 3, 5)
"""Seeds of random draws beside the given one. A change that turns the answer only by chance is not told."""
OTHER: Final = "other"
"""A value that few lists have, to leave a list without leaving the field out."""
SECOND_MS: Final = 1000.0
ATTRIBUTES: Final[dict[str, str]] = {"environment": "environment"} | {name: own for own, name in WIRE_NAMES.items()}
"""Wire name of a standard field → the attribute of a context."""
LITERALS: Final = ((r"\d", "1"), ("[0-9]", "1"), (r"\w", "a"), ("[a-z]", "a"), (".*", ""), (".+", "x"), ("+", ""))
"""What simple patterns have → a text that it matches."""


class Attempt(NamedTuple):
    """Values to try for one field; None is to leave it out. `strategy` is the place of the strategy, None for a parent's."""

    field: str
    values: list[str | None]
    strategy: int | None


def find_changes(unfolded: Unfolded, whole: WholeExplanation, context: Context) -> tuple[FieldChange, ...]:
    """Return the changes of one field that turn the answer: at most one for each field and strategy."""
    found: dict[tuple[str, str | None], FieldChange] = {}
    for attempt in attempts(unfolded, whole):
        change = try_values(unfolded.compiled.snapshot, whole, attempt, context)
        if change is not None:
            found.setdefault((change.field, change.value), change)
    return tuple(found.values())


def find_rollouts(unfolded: Unfolded, whole: WholeExplanation, context: Context) -> tuple[RolloutChange, ...]:
    """Return the smallest rollout of each strategy that lacks nothing else, if the toggle is off and would be on with it."""
    parents = [step.answer for step in whole.steps if isinstance(step, (ToggleStep, DependencyStep))]
    feature = unfolded.feature(whole.name)
    found = []
    if feature is None or whole.enabled or not all(parents):
        return ()
    for step, strategy in zip(whole.strategies(), feature.strategies, strict=False):
        rule = step.steps[-1]
        share = rule.smallest_share if isinstance(rule, RolloutStep) else None
        if step.failing == (RULE,) and share is not None and is_admitted(unfolded, strategy.spec, share, context):
            words = f"with a rollout of at least {share} % in strategy {step.place} it would be on"
            found.append(RolloutChange(words=words, strategy=step.place, share=share))
    return tuple(found)


def is_admitted(unfolded: Unfolded, spec: StrategySpec, share: int, context: Context) -> bool:
    """Return whether the rollout of a strategy would admit the context with another share."""
    node = unfolded.with_share(spec, str(share))
    return node.admits(Run(context, Memory(0, 0, unfolded.maker.utf8)))


def attempts(unfolded: Unfolded, whole: WholeExplanation) -> Iterator[Attempt]:
    """Give what could turn a toggle: its own strategies, or its parents."""
    parents = [step for step in whole.steps if isinstance(step, DependencyStep)]
    turnable = [step for step in parents if step.answer is whole.enabled]
    for step in turnable if whole.enabled or len(turnable) == 1 else []:
        if step.found is not None:
            yield from [attempt._replace(strategy=None) for attempt in attempts(unfolded, step.found)]
    feature = unfolded.feature(whole.name)
    if feature is not None and feature.spec.enabled and (whole.enabled or not turnable):
        for strategy in whole.strategies():
            yield from of_strategy(unfolded, feature.strategies[strategy.place - 1], strategy, whole)


def of_strategy(unfolded: Unfolded, strategy: UnfoldedStrategy, step: StrategyStep, whole: WholeExplanation) -> Iterator[Attempt]:
    """Give what could turn a strategy: on, if it lacks only one field; off, if it decided."""
    samples = conditions(unfolded, strategy)
    if whole.enabled:
        fields = {field for field, _ in samples.values()} if step.place == whole.strategy else set()
    else:
        fields = {samples[place][0] for place in step.failing if place in samples}
        if len(fields) != 1 or not samples.keys() >= set(step.failing):
            return
    for field in sorted(fields):
        about = [place for place, (named, _) in samples.items() if named == field]
        about.sort(key=lambda place: place not in step.failing)
        yield Attempt(field, [value for place in about for value in samples[place][1]], step.place)


def conditions(unfolded: Unfolded, strategy: UnfoldedStrategy) -> dict[str, tuple[str, list[str | None]]]:
    """Return the place of each condition on a field → the field, and values around those of the condition."""
    spec = strategy.spec
    found: dict[str, tuple[str, list[str | None]]] = {}
    listed = [(f"constraints[{at}]", constraint) for at, constraint in enumerate(spec.constraints)]
    for number, identity in enumerate(spec.segments):
        segment = unfolded.segments.get(identity)
        inside = [] if segment is None else segment.constraints
        listed += [(f"segments[{number}].constraints[{at}]", constraint) for at, constraint in enumerate(inside)]
    for place, constraint in listed:
        operator = None if constraint is None else OPERATORS.get(constraint.operator)
        if constraint is not None and operator is not None:
            field = CURRENT_TIME if operator.takes == DATE else constraint.field
            found[place] = (field, SAMPLES[operator.takes](constraint))
    if isinstance(strategy.probe, StickyRollout):
        found[RULE] = (strategy.probe.field, [None])
    row = LISTED.get(spec.name)
    if row is not None and row.field in FIELDS and not isinstance(strategy.node, Custom):
        values = [value.partition("/")[0] for value in listed_values(spec)[:TRIED]]
        found[RULE] = (row.field, [*values, None, OTHER])
    return found


def try_values(snapshot: Snapshot, whole: WholeExplanation, attempt: Attempt, context: Context) -> FieldChange | None:
    """Return the first change that turns the answer for any draw; None if none does."""
    for value in dict.fromkeys(attempt.values):
        changed = with_field(context, attempt.field, value)
        if changed is None:
            continue
        enabled, variant = snapshot.decide(changed, whole.name)
        if enabled is whole.enabled or not is_certain(snapshot, whole.name, changed, enabled):
            continue
        given = f"without {show(attempt.field)}" if value is None else f"with {show(attempt.field)} {show(value)}"
        return FieldChange(
            words=f"{given} it would be {'on' if enabled else 'off'}",
            field=attempt.field,
            value=value,
            enabled=enabled,
            variant=variant,
            strategy=attempt.strategy,
        )
    return None


def is_certain(snapshot: Snapshot, name: str, context: Context, enabled: bool) -> bool:
    """Return whether the answer is the same for other draws."""
    return all([snapshot.decide(context.replace(entropy=seed), name)[0] is enabled for seed in SEEDS])


def with_field(context: Context, field: str, value: str | None) -> Context | None:
    """Return the context with another value in a field, or without it; None if the field cannot have the value."""
    rest = {name: own for name, own in context.properties.items() if name != field}
    if FIELDS.get(field, PROPERTY) == PROPERTY:
        return context.replace(properties=rest if value is None else {**rest, field: value})
    if field == CURRENT_TIME:
        moment = jsdate.parse(value or "")
        return None if moment is None else context.replace(current_time=moment)
    if field not in ATTRIBUTES or value == "":
        return None
    return context.replace(properties=rest, **{ATTRIBUTES[field]: value})


def text_samples(spec: ConstraintSpec) -> list[str | None]:
    """Return values of the list, none, and another one."""
    return [*spec.values[:TRIED], None, OTHER]


def network_samples(spec: ConstraintSpec) -> list[str | None]:
    """Return the first address of each network, no value, and a text that is no address."""
    return [*[value.partition("/")[0] for value in spec.values[:TRIED]], None, OTHER]


def number_samples(spec: ConstraintSpec) -> list[str | None]:
    number = number_value(spec)
    return [*[jsnumber.to_text(each) for each in (number, number + 1, number - 1) if each == each], None]


def date_samples(spec: ConstraintSpec) -> list[str | None]:
    """Return moments a second after and before the constraint's."""
    moment = date_value(spec)
    return [] if moment is None else [show_moment(moment + SECOND_MS), show_moment(moment - SECOND_MS)]


def version_samples(spec: ConstraintSpec) -> list[str | None]:
    """Return the version, the next one, one before it and the first one."""
    version = parse_semver(text_value(spec), lenient=True)
    if version is None:
        return [None]
    release = f"{version.major}.{version.minor}."
    rest = "-" + ".".join(version.prerelease) if version.prerelease else ""
    same = f"{release}{version.patch}"
    return [same + rest, f"{release}{version.patch + 1}", same, f"{same}-0", "0.0.0-0", None]


def pattern_samples(spec: ConstraintSpec) -> list[str | None]:
    """Return texts that a simple pattern matches. Texts for other patterns are not found."""
    body = text_value(spec).strip("^$")
    if body.startswith("(") and body.endswith(")"):
        body = body[1:-1].removeprefix("?:")
    guesses: list[str | None] = []
    for each in body.split("|")[:TRIED]:
        guess = each.strip("^$")
        for piece, literal in LITERALS:
            guess = guess.replace(piece, literal)
        guesses.append(re.sub(r"\\(.)", r"\1", guess))
    return [*guesses, None, OTHER]


SAMPLES: Final[dict[str, Callable[[ConstraintSpec], list[str | None]]]] = {
    TEXTS: text_samples,
    NETWORKS: network_samples,
    NUMBER: number_samples,
    DATE: date_samples,
    VERSION: version_samples,
    PATTERN: pattern_samples,
}
"""Kind of an operator's values → values to try."""
