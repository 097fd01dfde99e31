"""What a strategy says in a few words each, for lists: `25 %`, `country: NL, BE`, `segment: beta`. The sentence has all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypedDict

from flagsvc.core.direction import isolate
from flagsvc.engine.model import ConstraintSpec, SegmentSpec, StrategySpec
from flagsvc.engine.operators import DATE, IS, IS_NOT, LISTS, NETWORK, OPERATORS, VERSION
from flagsvc.engine.parse import parse_strategy
from flagsvc.reasons.words import (
    DEFAULT,
    EVERYONE,
    LISTED,
    RANDOM,
    ROLLOUTS,
    constraint_words,
    is_disabled,
    listed_values,
    no_value_reason,
    operand,
    own_group_left_out,
    plain,
    rollout_of,
    strategy_words,
)

STRONG: Final = "strong"
"""The look of a chip with the rule of a strategy; the others have conditions."""
SHOWN: Final = 2
"""Values of a list that a chip has."""
LONGEST: Final = 24
"""Characters of a name or a value that a chip has."""
NOBODY: Final = "nobody"


class Chip(TypedDict):
    """A few words about who gets a flag, and their `look`."""

    text: str
    look: str


def chip(text: str, look: str = "") -> Chip:
    return {"text": text, "look": look}


class Description(NamedTuple):
    """A strategy as a sentence and as chips."""

    words: str
    chips: list[Chip]


ALL: Final = chip(EVERYONE, STRONG)


def describe_strategy(strategy: Mapping[str, Any], known: Mapping[str, SegmentSpec], flag: str) -> Description:
    """Return a strategy of a flag in words. Raises DocumentError if it is malformed."""
    given = own_group_left_out(strategy, flag)
    spec = parse_strategy(given, "strategy")
    return Description(strategy_words(spec, known, disabled=is_disabled(given)), list(strategy_chips(spec, known)) or [ALL])


def join_chips(strategies: Sequence[Sequence[Chip]], variants: int = 0) -> list[Chip]:
    """Return the chips of all active strategies of a flag in an environment: those of one, and how many others there are.

    A strategy for everyone stands for all. Without a strategy a flag is on for everyone. `variants` are those of the flag itself,
    which a strategy without variants draws from.
    """
    if len(strategies) < 2 and not variants:
        return [*(strategies[0] if strategies else [ALL])]
    first = next((each for each in strategies if ALL in each), strategies[0] if strategies else [ALL])
    draws = any(each["look"] and " variant" in each["text"] for each in first)
    own = [variants_chip(variants)] if variants and not draws else []
    rest = [each for each in first if not own or each != ALL]
    more = len(strategies) - 1
    return [*own, *rest, *([chip(f"+{more}")] if more > 0 else [])]


def variants_chip(number: int) -> Chip:
    return chip(f"{number} variant{'' if number == 1 else 's'}", STRONG)


def strategy_chips(spec: StrategySpec, known: Mapping[str, SegmentSpec]) -> Iterator[Chip]:
    """Yield the rule of a strategy, its variants and its conditions; nothing for a strategy that admits everyone."""
    yield from rule_chips(spec)
    if spec.variants:
        yield variants_chip(len(spec.variants))
    yield from (constraint_chip(each) for each in spec.constraints)
    for identity in spec.segments:
        segment = known.get(identity)
        yield chip(f"segment: {cut(identity if segment is None else segment.name or identity)}")


def rule_chips(spec: StrategySpec) -> Iterator[Chip]:
    """Yield the rule of a strategy, if the rule does not admit everyone."""
    if spec.name in ROLLOUTS:
        share, sticks_to, _ = rollout_of(spec)
        if share < 100:
            yield chip(f"{share} %" if share else NOBODY, STRONG)
        elif sticks_to not in (DEFAULT, RANDOM):
            yield chip(f"has {cut(sticks_to)}")
    elif spec.name in LISTED:
        values = listed_values(spec)
        yield chip(f"{LISTED[spec.name].field}: {shorten(values)}") if values else chip(NOBODY, STRONG)
    elif spec.name != DEFAULT:
        yield chip(f"custom: {cut(spec.name)}", STRONG)


def constraint_chip(spec: ConstraintSpec | None) -> Chip:
    """Return a constraint: `country: NL, BE +5`, `country: not NL`, `appVersion ≥ 4.2.0`, `after 2026-12-24 18:00`."""
    operator = None if spec is None else OPERATORS.get(spec.operator)
    if spec is None or operator is None or (operator.takes not in LISTS and no_value_reason(spec)):
        return chip(constraint_words(spec).partition(":")[0].partition(",")[0])
    words = operator.words.not_one if spec.inverted else operator.words.one
    if operator.words in (IS, IS_NOT, NETWORK):
        negated = "not " if spec.inverted is not (operator.words is IS_NOT) else ""
        return chip(f"{cut(spec.field)}: {negated}{shorten(spec.values) or 'no value'}")
    if operator.takes in LISTS:
        return chip(f"{cut(spec.field)} {words} {shorten(spec.values) or 'no value'}")
    value = operand(spec, operator)
    if operator.takes == DATE:
        return chip(f"{words.removeprefix('is ')} {value[:16].replace('T', ' ').removesuffix(' 00:00')}")
    if operator.takes == VERSION:
        words = words.removesuffix(" version")
    return chip(f"{cut(spec.field)} {words} {cut(value)}")


def cut(text: str) -> str:
    """Return a text as a chip has it: without control characters, short, and isolated."""
    shown = plain(text)
    return isolate(shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…")


def shorten(values: Iterable[str]) -> str:
    """Return the first values of a list, and the number of the rest."""
    found = list(values)
    more = len(found) - SHOWN
    return ", ".join([cut(each) for each in found[:SHOWN]]) + (f" +{more}" if more > 0 else "")
