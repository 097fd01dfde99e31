"""Checks of constraints that go beyond their shape: values fit the operator and are legal (import validation 6.3, step 7)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import re2

from flagsvc.engine.operators import DATE, LISTS, NETWORKS, NUMBER, OPERATORS, PATTERN, TEXTS, VERSION
from flagsvc.engine.values import cidr, jsdate, jsnumber, semver
from flagsvc.engine.values.regex import encode, is_costly, is_portable
from flagsvc.http.shapes.text import as_string
from flagsvc.server.store.checks import Json, invalid, make_detail
from flagsvc.server.store.errors import CallerError, bad_data

MAX_VALUE_LENGTH = 100
MAX_CONSTRAINTS = 30
MAX_VALUES = 250
MAX_SAFE_INTEGER = 2**53 - 1
DECIMAL = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*\Z", re.ASCII | re.IGNORECASE)
MILLISECONDS = re.compile(r"[+-]?\d+(\.\d+)?\Z", re.ASCII)
NOT_A_REGEX = "the provided value is not a valid regex string."
LIMIT_MESSAGE = "Failed to create {}. You can't create more than the established limit of {}."
RE2_MESSAGES = {
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid named capture group": "invalid named capture",
}
"""The RE2 library's message about a pattern → the real server's message."""
TOO_LARGE_MESSAGE = "pattern too large - compile failed"
NOT_PORTABLE_MESSAGE = "invalid escape sequence: `\\C`, or a group name that is given twice or not of ASCII"


def check_constraints(constraints: Sequence[Json], legal: Mapping[str, Collection[str]]) -> list[Json]:
    """Return constraints, each with a list of values; raise CallerError (400) for the first invalid one.

    `legal` maps a context field to its legal values; without any, every value is legal.
    """
    checked = check_values(constraints)
    check_legal_values(checked, legal)
    return checked


def check_constraint(constraint: Json, legal: Mapping[str, Collection[str]]) -> Json:
    """Return one constraint with a list of values, or raise CallerError (400), like `check_constraints`."""
    return check_constraints([constraint], legal)[0]


def check_values(constraints: Sequence[Json]) -> list[Json]:
    """Return constraints, each with a list of values. Raises CallerError (400) if an operator refuses its values."""
    checked = [each | {"values": each.get("values", [])} for each in constraints]
    for each in checked:
        _check_texts(each)
    for each in _in_check_order(checked):
        CHECKS[family(each)](each)
    return checked


def check_legal_values(constraints: Sequence[Json], legal: Mapping[str, Collection[str]]) -> None:
    """Raise CallerError (400) for the first constraint with a value that is not legal in its context field."""
    for each in _in_check_order(constraints):
        allowed = legal.get(each["contextName"])
        if allowed:
            _check_legal(each, allowed, single_value=family(each) not in LISTS)


def family(constraint: Json) -> str:
    """Return what values the operator of a constraint takes: the family of the operator."""
    return OPERATORS[constraint["operator"]].takes


def _in_check_order(constraints: Sequence[Json]) -> list[Json]:
    """Return constraints in the order in which the real server checks them."""
    return sorted(constraints, key=lambda each: family(each) not in CHECKED_FIRST)


def check_limits(constraints: Sequence[Json], before: Sequence[Json] = ()) -> None:
    """Raise CallerError (400) for too many constraints or values. As many as `before` had are accepted."""
    if len(constraints) > max(MAX_CONSTRAINTS, len(before)):
        raise limit_exceeded("constraints", MAX_CONSTRAINTS)
    for index in find_long(constraints, before):
        raise limit_exceeded(f"constraint values for {constraints[index]['contextName']}", MAX_VALUES)


def find_long(constraints: Sequence[Json], before: Sequence[Json] = ()) -> Iterator[int]:
    """Give the places of constraints with too many values. As many as `before` had are accepted."""
    counts = [len(each.get("values") or []) for each in before]
    for index, each in enumerate(constraints):
        count = len(each.get("values") or [])
        kept = len(before) == len(constraints) and count <= counts[index]
        if count > MAX_VALUES and not kept:
            yield index


def limit_exceeded(what: str, limit: int) -> CallerError:
    """Return the 400 for an exceeded limit; `what` names the things in the plural."""
    return CallerError("ExceedsLimitError", LIMIT_MESSAGE.format(what, limit), status=400)


def _check_texts(constraint: Json) -> None:
    if not constraint["contextName"]:
        raise invalid(make_detail('"contextName" is not allowed to be empty'))
    for index, value in enumerate(constraint["values"]):
        if not value:
            raise invalid(make_detail(f'"values[{index}]" is not allowed to be empty'))
        if len(value) > MAX_VALUE_LENGTH:
            problem = f'"values[{index}]" length must be less than or equal to {MAX_VALUE_LENGTH} characters long'
            raise invalid(make_detail(problem, value))


def _check_values(constraint: Json) -> None:
    if not constraint["values"]:
        raise invalid(make_detail('"value" must contain at least 1 items', []))


def _check_networks(constraint: Json) -> None:
    """Raise CallerError for a list without values, or with one that is neither an address nor a range of them."""
    _check_values(constraint)
    for index, value in enumerate(constraint["values"]):
        if not cidr.is_range(value):
            raise invalid(make_detail(f'"values[{index}]" must be an IP address or a CIDR range', value))


def _check_number(constraint: Json) -> None:
    """Raise CallerError for a value that is not a number, or not exact as a double."""
    text = constraint.get("value")
    if text is None:
        return
    if not DECIMAL.match(text):
        raise invalid(make_detail('"value" must be a number', text))
    number = jsnumber.parse(text.strip())
    if not is_exact(text.strip(), number):
        raise invalid(make_detail('"value" must be a safe number', text))
    if abs(number) > MAX_SAFE_INTEGER:
        raise invalid(make_detail('"value" must be a safe number', number))


def is_exact(text: str, number: float) -> bool:
    """Return whether a decimal number equals the shortest text of its double."""
    if abs(number) == float("inf") or number == 0:  # keeps exponents below within bounds
        return number == 0 and not re.search("[1-9]", text.lower().partition("e")[0])
    return Decimal(text) == Decimal(repr(number))


def _check_date(constraint: Json) -> None:
    text = constraint.get("value")
    if text is None:
        return
    number = MILLISECONDS.match(text)
    if (jsdate.from_number(float(text)) if number else jsdate.parse(text)) is None:
        raise invalid(make_detail('"value" must be a valid date', text))


def _check_version(constraint: Json) -> None:
    text = constraint.get("value")
    if not isinstance(text, str):
        raise bad_data("the provided value is not a string.")
    if len(text) > semver.LONGEST or semver.parse_bare(text) is None:
        raise bad_data(f"the provided value is not a valid semver format. The value provided was: {text}")


def _check_regex(constraint: Json) -> None:
    text = constraint.get("value")
    if not isinstance(text, str):
        raise bad_data(NOT_A_REGEX)
    problem = regex_problem(text)
    if problem is not None:
        raise bad_data(f"{NOT_A_REGEX} Error: error parsing regexp: {problem}")
    if constraint.get("inverted") is True:
        raise bad_data("REGEX operator cannot be inverted.")


def regex_problem(pattern: str) -> str | None:
    """Return what is wrong with a pattern; None for a valid one."""
    content = encode(pattern)
    if is_costly(pattern, len(content)):
        return TOO_LARGE_MESSAGE
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        re2.compile(content, options)
    except re2.error as error:
        return translate_re2_error(error)
    return None if is_portable(pattern) else NOT_PORTABLE_MESSAGE


def translate_re2_error(error: Any) -> str:
    """Return the message of an RE2 error in the words of the real server."""
    text = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error.args[0])
    if text.startswith("trailing \\"):
        return "trailing backslash at end of expression"
    problem, mark, spot = text.partition(": ")
    return f"{RE2_MESSAGES.get(problem, problem)}{mark}" + (f"`{spot}`" if mark else "")


def _check_legal(constraint: Json, legal: Collection[str], *, single_value: bool) -> None:
    value = constraint.get("value")
    if single_value and value not in legal:
        shown = "undefined" if value is None else as_string(value)
        raise bad_data(f"{shown} is not specified as a legal value on this context field")
    if not single_value and any(each not in legal for each in constraint["values"]):
        raise bad_data("input values are not specified as a legal value on this context field")


CHECKS = {
    TEXTS: _check_values,
    NETWORKS: _check_networks,
    NUMBER: _check_number,
    DATE: _check_date,
    VERSION: _check_version,
    PATTERN: _check_regex,
}
"""Family of operators → the check of their values."""
CHECKED_FIRST = (VERSION, PATTERN)
"""The operators whose values the real server checks synchronously, so before all others."""
