"""The operators of constraints, one row each: how a constraint becomes a predicate (behaviour: List constraints).

The flag server reads the same rows: the names of the operators, and the values that each takes. A constraint with an unknown
operator never holds, inverted or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from flagsvc.engine.context import FIELDS, PROPERTY
from flagsvc.engine.model import ConstraintSpec
from flagsvc.engine.predicates import (
    EQUAL,
    GREATER,
    LESS,
    Always,
    Contains,
    DateComparison,
    EndsWith,
    InList,
    InNetwork,
    Matches,
    Never,
    NumberComparison,
    Predicate,
    SemverComparison,
    StartsWith,
)
from flagsvc.engine.values import jsdate, jsnumber
from flagsvc.engine.values.jsvalue import MISSING, number_of, text_of
from flagsvc.engine.values.regex import compile_regex
from flagsvc.engine.values.semver import parse as parse_semver


def kind_of(field: str) -> int:
    """Return the kind of the context field of this wire name."""
    return FIELDS.get(field, PROPERTY)


def constant(outcome: bool, reason: str) -> Predicate:
    """Return the predicate that always or never holds."""
    return Always() if outcome else Never(reason)


def compile_in(spec: ConstraintSpec, accepts: int) -> Predicate:
    """IN: the field is one of the values."""
    return InList(kind_of(spec.field), spec.field, spec.inverted, spec.unique())


def compile_not_in(spec: ConstraintSpec, accepts: int) -> Predicate:
    """NOT_IN: the field is none of the values."""
    return InList(kind_of(spec.field), spec.field, not spec.inverted, spec.unique())


def compile_starts_with(spec: ConstraintSpec, accepts: int) -> Predicate:
    return StartsWith(kind_of(spec.field), spec.field, spec.inverted, spec.values, spec.insensitive)


def compile_ends_with(spec: ConstraintSpec, accepts: int) -> Predicate:
    return EndsWith(kind_of(spec.field), spec.field, spec.inverted, spec.values, spec.insensitive)


def compile_contains(spec: ConstraintSpec, accepts: int) -> Predicate:
    return Contains(kind_of(spec.field), spec.field, spec.inverted, spec.values, spec.insensitive)


def compile_regex_match(spec: ConstraintSpec, accepts: int) -> Predicate:
    """REGEX: a pattern that is not a text or not valid is false, and true if inverted."""
    if not isinstance(spec.value, str):
        return constant(spec.inverted, "no regular expression is given")
    pattern = compile_regex(spec.value, spec.insensitive)
    if pattern is None:
        return constant(spec.inverted, f"`{spec.value}` is not a regular expression")
    return Matches(kind_of(spec.field), spec.field, spec.inverted, pattern, spec.value)


def compile_network(spec: ConstraintSpec, accepts: int) -> Predicate:
    """IN_CIDR: values that are not networks are ignored."""
    return InNetwork(kind_of(spec.field), spec.field, spec.inverted, spec.values, spec.cidrs())


def compile_number(spec: ConstraintSpec, accepts: int) -> Predicate:
    """NUM_*: a value that is not a number makes the constraint false, and true if inverted."""
    number = number_value(spec)
    if number != number:
        return constant(spec.inverted, f"`{text_value(spec)}` is not a number")
    return NumberComparison(kind_of(spec.field), spec.field, spec.inverted, accepts, number)


def compile_version(spec: ConstraintSpec, accepts: int) -> Predicate:
    """SEMVER_*: a value that is not a version makes the constraint false, and true if inverted."""
    version = parse_semver(text_value(spec), lenient=True) if isinstance(spec.value, str) else None
    if version is None:
        return constant(spec.inverted, f"`{text_value(spec)}` is not a semantic version")
    return SemverComparison(kind_of(spec.field), spec.field, spec.inverted, accepts, version, text_value(spec))


def compile_moment(spec: ConstraintSpec, accepts: int) -> Predicate:
    """DATE_*: a value that is not a date makes the constraint false, and true if inverted."""
    moment = date_value(spec)
    if moment is None:
        return constant(spec.inverted, f"`{text_value(spec)}` is not a date")
    return DateComparison(spec.inverted, accepts, moment)


def text_value(spec: ConstraintSpec) -> str:
    """Return the constraint's single value as text; empty if it is missing."""
    return "" if spec.value is MISSING else text_of(spec.value)


def number_value(spec: ConstraintSpec) -> float:
    """Return the constraint's value as JavaScript's Number: NaN for a missing value, zero for null."""
    return number_of(spec.value)


def date_value(spec: ConstraintSpec) -> float | None:
    """Return the constraint's value in epoch milliseconds; None for a missing or invalid value. Null is 1970."""
    if spec.value is MISSING:
        return None
    if spec.value is None:
        return 0.0
    if isinstance(spec.value, int):
        return jsdate.from_number(jsnumber.from_int(spec.value))
    if isinstance(spec.value, float):
        return jsdate.from_number(spec.value)
    return jsdate.parse(text_value(spec))


TEXTS: Final = "texts"
NETWORKS: Final = "networks"
NUMBER: Final = "number"
DATE: Final = "date"
VERSION: Final = "version"
PATTERN: Final = "pattern"

LISTS: Final = (TEXTS, NETWORKS)
"""The kinds of values of operators that compare with several `values`. Every other operator compares with a single `value`."""


class Words(NamedTuple):
    """What an operator says of a field, before one value and before several; `not_one` and `not_many` if it is inverted."""

    one: str
    many: str
    not_one: str
    not_many: str


def comparison(words: str, not_words: str = "") -> Words:
    """Return the words of an operator that takes a single value."""
    inverted = not_words or f"not {words}"
    return Words(words, words, inverted, inverted)


IS: Final = Words("is", "is one of", "is not", "is none of")
IS_NOT: Final = Words("is not", "is none of", "is", "is one of")
STARTS: Final = Words("starts with", "starts with one of", "does not start with", "starts with none of")
ENDS: Final = Words("ends with", "ends with one of", "does not end with", "ends with none of")
CONTAINS: Final = Words("contains", "contains one of", "does not contain", "contains none of")
NETWORK: Final = Words("is in the network", "is in one of the networks", "is not in the network", "is in none of the networks")


class Operator(NamedTuple):
    """One operator.

    `takes` is the kind of its values. `build` compiles its constraint. `words` are for sentences. `accepts` are the results that
    satisfy a comparison. `as_set` tells that `build` makes a set of the values, `any_case` that a constraint can ignore case. An
    `extension` is not in version 8.2.0 of the real server: the flag server accepts it, and error messages do not name it.
    """

    takes: str
    build: Callable[[ConstraintSpec, int], Predicate]
    words: Words
    accepts: int = 0
    as_set: bool = False
    any_case: bool = False
    extension: bool = False


OPERATORS: Final[dict[str, Operator]] = {
    "NOT_IN": Operator(TEXTS, compile_not_in, IS_NOT, as_set=True),
    "IN": Operator(TEXTS, compile_in, IS, as_set=True),
    "STR_ENDS_WITH": Operator(TEXTS, compile_ends_with, ENDS, any_case=True),
    "STR_STARTS_WITH": Operator(TEXTS, compile_starts_with, STARTS, any_case=True),
    "STR_CONTAINS": Operator(TEXTS, compile_contains, CONTAINS, any_case=True),
    "NUM_EQ": Operator(NUMBER, compile_number, comparison("="), EQUAL),
    "NUM_GT": Operator(NUMBER, compile_number, comparison(">"), GREATER),
    "NUM_GTE": Operator(NUMBER, compile_number, comparison("≥"), GREATER | EQUAL),
    "NUM_LT": Operator(NUMBER, compile_number, comparison("<"), LESS),
    "NUM_LTE": Operator(NUMBER, compile_number, comparison("≤"), LESS | EQUAL),
    "DATE_AFTER": Operator(DATE, compile_moment, comparison("is after", "is not after"), GREATER),
    "DATE_BEFORE": Operator(DATE, compile_moment, comparison("is before", "is not before"), LESS),
    "SEMVER_EQ": Operator(VERSION, compile_version, comparison("= version"), EQUAL),
    "SEMVER_GT": Operator(VERSION, compile_version, comparison("> version"), GREATER),
    "SEMVER_LT": Operator(VERSION, compile_version, comparison("< version"), LESS),
    "SEMVER_GTE": Operator(VERSION, compile_version, comparison("≥ version"), GREATER | EQUAL),
    "SEMVER_LTE": Operator(VERSION, compile_version, comparison("≤ version"), LESS | EQUAL),
    "REGEX": Operator(PATTERN, compile_regex_match, comparison("matches", "does not match"), any_case=True),
    "IN_CIDR": Operator(NETWORKS, compile_network, NETWORK, extension=True),
}
"""The operators by name, in the order of the flag server's messages (import validation 2)."""


def compile_constraint(spec: ConstraintSpec | None) -> Predicate:
    """Return the predicate of one constraint. A null constraint never holds."""
    if spec is None:
        return Never("a constraint that is no object")
    operator = OPERATORS.get(spec.operator)
    if operator is None:
        return Never(f"unknown operator `{spec.operator}`")
    if spec.unreadable and operator.takes in LISTS:
        return Never("its `values` are no list of texts")
    return operator.build(spec, operator.accepts)
