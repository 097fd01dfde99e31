"""Sentences of strategies, constraints, segments, rollouts and variants. They depend on the configuration only, never on a context.

`25 % by userId, group new-checkout and plan is one of team, business and in segment beta: region starts with eu`

The default is not told: neither stickiness `default`, nor the group that has the name of the flag.

The last functions take strategies, segments and variants as the admin API and the flag server's store have them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from flagsvc.core.direction import isolate
from flagsvc.core.errors import DocumentError
from flagsvc.engine.model import ConstraintSpec, DependencySpec, SegmentSpec, StrategySpec, VariantSpec
from flagsvc.engine.operators import (
    DATE,
    IS,
    LISTS,
    NUMBER,
    OPERATORS,
    Operator,
    Words,
    comparison,
    compile_constraint,
    date_value,
    number_value,
    text_value,
)
from flagsvc.engine.parse import parse_segment, parse_strategy, parse_variants
from flagsvc.engine.predicates import Never
from flagsvc.engine.reading import as_object
from flagsvc.engine.strategies import BY_HOST, percentage
from flagsvc.engine.values import jsdate, jsnumber
from flagsvc.engine.values.text import split_list

SHOWN: Final = 3
"""Values of a list that a sentence has."""
LONGEST: Final = 60
"""Characters of a value that a sentence has."""
TIME: Final = "time"
"""What a date constraint is about. The field that it names does not matter."""
EVERYONE: Final = "everyone"
OFF: Final = " (disabled)"
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def plain(text: str) -> str:
    """Return a text of a document or a context for a sentence: shortened, without control characters."""
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    if short.isprintable():
        return short
    return "".join([each if each.isprintable() else ascii(each)[1:-1] for each in short])


def show(value: str) -> str:
    """Return a value for a sentence: as `plain` does and isolated, in quotes where its ends would not be seen."""
    shown = isolate(plain(value))
    return f'"{shown}"' if not value or value != value.strip() or "," in value else shown


def shorten(values: Sequence[str]) -> str:
    """Return the first values of a list, and the number of the rest."""
    more = len(values) - SHOWN
    return ", ".join([show(value) for value in values[:SHOWN]]) + (f" (+{more})" if more > 0 else "")


def list_words(words: Words, inverted: bool, values: Sequence[str]) -> str:
    """Return an operator's words, and the values."""
    if len(values) == 1:
        return f"{words.not_one if inverted else words.one} {show(values[0])}"
    return f"{words.not_many if inverted else words.many} {shorten(values) or 'no values'}"


def show_moment(ms: float) -> str:
    """Return a moment (epoch milliseconds) as `2026-12-24T18:00:00Z`."""
    try:
        moment = EPOCH + datetime.timedelta(milliseconds=ms)
    except (OverflowError, ValueError):
        return jsdate.to_text(ms)
    return moment.isoformat(timespec="milliseconds").replace(".000", "").replace("+00:00", "Z")


def no_value_reason(spec: ConstraintSpec) -> str:
    """Return why the value of a constraint is none, so that every context gets the same answer; empty if it is one."""
    upright = ConstraintSpec(spec.path, spec.field, spec.operator, (), spec.value, False, spec.insensitive)
    made = compile_constraint(upright)
    return made.reason if isinstance(made, Never) else ""


def operand(spec: ConstraintSpec, operator: Operator) -> str:
    """Return the single value of a constraint, as the evaluation reads it."""
    if operator.takes == NUMBER:
        return jsnumber.to_text(number_value(spec))
    moment = date_value(spec) if operator.takes == DATE else None
    return text_value(spec) if moment is None else show_moment(moment)


def operands(spec: ConstraintSpec) -> tuple[str, ...]:
    """Return what a constraint compares with: its values, or its single value; nothing if that is missing."""
    operator = OPERATORS.get(spec.operator)
    if operator is None or operator.takes in LISTS:
        return spec.values
    return () if no_value_reason(spec) else (operand(spec, operator),)


def constraint_words(spec: ConstraintSpec | None) -> str:
    operator = None if spec is None else OPERATORS.get(spec.operator)
    if spec is None or operator is None:
        made = compile_constraint(spec)
        return f"never: {made.reason}" if isinstance(made, Never) else "always"
    case = ", in any case" if spec.insensitive and operator.any_case else ""
    if operator.takes in LISTS:
        return f"{show(spec.field)} {list_words(operator.words, spec.inverted, spec.values)}{case}"
    reason = no_value_reason(spec)
    if reason:
        return f"{'always, because it is inverted' if spec.inverted else 'never'}: {reason}"
    subject = TIME if operator.takes == DATE else show(spec.field)
    return f"{subject} {list_words(operator.words, spec.inverted, [operand(spec, operator)])}{case}"


def segment_words(segment: SegmentSpec | None, identity: str) -> str:
    """Return a segment as a sentence. None is a missing segment."""
    if segment is None:
        return f"in segment {show(identity)}, which is missing"
    holds = " and ".join([constraint_words(each) for each in segment.constraints]) or EVERYONE
    return f"in segment {show(segment.name or segment.identity)}: {holds}"


DEFAULT: Final = "default"
RANDOM: Final = "random"


class Rollout(NamedTuple):
    """The parameters of a rollout: `share` in percent, the field that it `sticks_to` (or `default`, `random`), its `group`."""

    share: int
    sticks_to: str
    group: str


class RolloutRow(NamedTuple):
    """A strategy that is a rollout: the parameter with its share; the field that it sticks to, empty if a parameter says it."""

    parameter: str
    sticks_to: str = ""


ROLLOUTS: Final[dict[str, RolloutRow]] = {
    "flexibleRollout": RolloutRow("rollout"),
    "gradualRolloutUserId": RolloutRow("percentage", "userId"),
    "gradualRolloutSessionId": RolloutRow("percentage", "sessionId"),
    "gradualRolloutRandom": RolloutRow("percentage", RANDOM),
}


def rollout_of(spec: StrategySpec) -> Rollout:
    row = ROLLOUTS[spec.name]
    sticks_to = row.sticks_to or spec.parameters.get("stickiness") or DEFAULT
    return Rollout(percentage(spec.parameters.get(row.parameter)), sticks_to, spec.parameters.get("groupId") or "")


def rollout_words(rollout: Rollout) -> str:
    if rollout.share == 0:
        return "nobody (0 %)"
    if rollout.sticks_to in (DEFAULT, RANDOM) and rollout.share == 100:
        return EVERYONE
    if rollout.sticks_to == RANDOM:
        return f"{rollout.share} % of all requests, by chance"
    if rollout.share == 100:
        return f"everyone with {show(rollout.sticks_to)}"
    by = "" if rollout.sticks_to == DEFAULT else f" by {show(rollout.sticks_to)}"
    return f"{rollout.share} %{by}" + (f", group {show(rollout.group)}" if rollout.group else "")


class ListRow(NamedTuple):
    """A strategy that compares with a list: what it is about, and the parameter with the list, separated by commas."""

    field: str
    parameter: str
    words: Words = IS


LISTED: Final[dict[str, ListRow]] = {
    "userWithId": ListRow("userId", "userIds"),
    "remoteAddress": ListRow("remoteAddress", "IPs", comparison("is in")),
    BY_HOST: ListRow("the proxy's host", "hostNames"),
}


def listed_values(spec: StrategySpec) -> list[str]:
    text = spec.parameters.get(LISTED[spec.name].parameter)
    return split_list(text) if text else []


def listed_words(spec: StrategySpec) -> str:
    values = listed_values(spec)
    row = LISTED[spec.name]
    return f"{row.field} {list_words(row.words, False, values)}" if values else f"nobody (no {row.parameter})"


def custom_words(spec: StrategySpec) -> str:
    pairs = [f"{show(name)}: {show(value)}" for name, value in spec.parameters.items()]
    more = len(pairs) - SHOWN
    told = ", ".join(pairs[:SHOWN]) + (f" (+{more})" if more > 0 else "")
    return f"custom strategy {show(spec.name)}" + (f" ({told})" if told else "")


RULES: Final[dict[str, Callable[[StrategySpec], str]]] = {
    DEFAULT: lambda spec: EVERYONE,
    **dict.fromkeys(LISTED, listed_words),
    **dict.fromkeys(ROLLOUTS, lambda spec: rollout_words(rollout_of(spec))),
}
"""Built-in strategy → its own rule as a sentence."""


def rule_words(spec: StrategySpec, custom: Container[str] | None = None) -> str:
    """Return a strategy's own rule as a sentence.

    `custom` are the names of the custom strategies that there are; None if that is not known.
    """
    if custom is not None and spec.name in custom:
        return custom_words(spec)
    if spec.name in RULES:
        return RULES[spec.name](spec)
    if custom is None:
        return custom_words(spec)
    return f"nobody: unknown strategy {show(spec.name)}"


def is_disabled(strategy: dict[str, object]) -> bool:
    """Return whether a strategy says that it is disabled. Flag servers leave such strategies out of what they send."""
    return strategy.get("disabled") is True


def strategy_words(
    spec: StrategySpec,
    segments: Mapping[str, SegmentSpec],
    *,
    disabled: bool = False,
    custom: Container[str] | None = None,
) -> str:
    """Return a strategy as a sentence: its rule, its constraints and its segments. `segments` has them by identity."""
    rule = rule_words(spec, custom)
    parts = [constraint_words(constraint) for constraint in spec.constraints]
    parts += [segment_words(segments.get(identity), identity) for identity in spec.segments]
    own = [] if parts and rule == EVERYONE else [rule]
    return " and ".join([*own, *parts]) + (OFF if disabled else "")


BY_DEFAULT: Final[dict[str, str]] = {DEFAULT: "userId, sessionId or remoteAddress", RANDOM: "chance"}
"""Stickiness of variants that is no field → its words."""


def variants_words(variants: Sequence[VariantSpec], sticks_to: str) -> str:
    """Return variants and their shares as a sentence: `blue 50 %, green 50 %, by userId`; empty without variants."""
    total = sum([variant.weight for variant in variants])
    if total <= 0:
        return ""
    shares = [f"{show(each.name)} {jsnumber.to_text(round(100 * each.weight / total, 1))} %" for each in variants]
    more = len(shares) - SHOWN
    by = BY_DEFAULT.get(sticks_to) or show(sticks_to)
    return ", ".join(shares[:SHOWN]) + (f" (+{more})" if more > 0 else "") + f", by {by}"


def dependency_words(spec: DependencySpec) -> str:
    if not spec.enabled:
        return f"toggle {show(spec.feature)} is off"
    variants = " or ".join([show(variant) for variant in spec.variants]) or (spec.text and f"in {show(spec.text)}")
    return f"toggle {show(spec.feature)} is on" + (f" with variant {variants}" if variants else "")


def read_segments(rows: Iterable[Mapping[str, Any]]) -> dict[str, SegmentSpec]:
    """Return segments by identity. A segment without an id is left out, as for clients."""
    found: dict[str, SegmentSpec] = {}
    for row in rows:
        try:
            spec = parse_segment(dict(row), "segment")
        except DocumentError:
            continue
        found[spec.identity] = spec
    return found


def own_group_left_out(strategy: Mapping[str, Any], flag: str) -> dict[str, Any]:
    """Return a strategy of a flag without its group if that is the default: the name of the flag. Raises DocumentError."""
    given = as_object(dict(strategy), "strategy")
    parameters = given.get("parameters")
    if not isinstance(parameters, Mapping) or not flag or parameters.get("groupId") != flag:
        return given
    return given | {"parameters": {name: value for name, value in parameters.items() if name != "groupId"}}


def words_of(strategy: Mapping[str, Any], known: Mapping[str, SegmentSpec], flag: str = "") -> str:
    """Return a strategy in words; of a known `flag` without the default group. Raises DocumentError if it is malformed."""
    given = own_group_left_out(strategy, flag)
    return strategy_words(parse_strategy(given, "strategy"), known, disabled=is_disabled(given))


def words_of_variants(variants: Sequence[Mapping[str, Any]]) -> str:
    """Return the variants of a flag or a strategy in words; empty without any."""
    if not variants:
        return ""
    specs = parse_variants({"variants": list(variants)}, "variants")
    return variants_words(specs, variants[0].get("stickiness") or "default")


def whole_words(strategy: Mapping[str, Any], known: Mapping[str, SegmentSpec], flag: str = "") -> str:
    """Return a strategy with its title and its variants in words; of a known `flag` without the default group."""
    title = f"{isolate(plain(strategy['title']))}: " if strategy.get("title") else ""
    variants = words_of_variants(strategy.get("variants") or ())
    return f"{title}{words_of(strategy, known, flag)}" + (f"; variants: {variants}" if variants else "")
