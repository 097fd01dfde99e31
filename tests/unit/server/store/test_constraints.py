"""Checks of constraints that a shape cannot express: valid values and legal values (import validation 6.3, step 7)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.constraints import check_constraint, check_constraints, check_limits
from flagsvc.server.store.errors import CallerError

NUMBER = '"value" must be a number'
SAFE = '"value" must be a safe number'
DATE = '"value" must be a valid date'
VERSION = "the provided value is not a valid semver format. The value provided was: {}"
REGEX = "the provided value is not a valid regex string."


def constraint(operator: str, value: str | None = None, **given: Any) -> dict[str, Any]:
    """Return a constraint."""
    one = {} if value is None else {"value": value}
    return {"contextName": "userId", "operator": operator, **one, **given}


def problem(wanted: dict[str, Any], legal: dict[str, list[str]] | None = None) -> str | None:
    """Return the error message for a constraint, or None if it is valid."""
    try:
        check_constraint(wanted, legal or {})
    except CallerError as refusal:
        return refusal.details[0]["message"]
    return None


FIT: dict[str, tuple[str, ...]] = {
    # decimal numbers that a double can hold, also with spaces around them
    "NUM_GT": ("1", " 1 ", "1e3", ".5", "5.", "+5", "-0", "00012", "1.50", "\t7\n", "0.30000000000000004"),
    # what JavaScript reads as a date or as milliseconds
    "DATE_AFTER": ("2024-01-01", "2024-02-30", "January 1 2024", "5", "-5", "1.5", "foo 12", "2024-01-01 10:00"),
    # a pre-release and build metadata, as 8.2.0 takes them, up to 256 characters
    "SEMVER_LT": (*("1.2.3-beta.1", "1.2.3+b", "1.2.3-rc.1+b.5", "1.2.3+001", "9007199254740991.0.0+x"), "1.2.3-" + "a" * 250),
}
SHOWN = {
    # the text if digits are lost, and the number if it is only too large
    "9007199254740993": '"9007199254740993"',
    "9007199254740992": "9007199254740992",
    "1e21": "1e+21",
    **{text: f'"{text}"' for text in ("1e400", "1e-400", "1e99999999999999999999", "0.1234567890123456789")},
}
VERSIONS = (
    *("1", "v1.2.3", "=1.2.3", "1.2", "01.2.3", " 1.2.3 ", "1.2.3-01", "", "1.2.3-" + "a" * 251),
    *("1.2.3-" + "a" * 260, "1.2.3+", "1.2.3+b+c", "1.2.3+b_c", "1.2.3+b ", "01.2.3+b", "1.2.3+" + "b" * 300),
)
PATTERNS = {
    "a(?=b)": "invalid or unsupported Perl syntax: `(?=`",
    "[a": "missing closing ]: `[a`",
    "*a": "missing argument to repetition operator: `*`",
    "a{1001}": "invalid repeat count: `{1001}`",
    "a**": "invalid nested repetition operator: `**`",
    "\\": "trailing backslash at end of expression",
}
"""Pattern → the same reason as on the real server."""
VALUES: list[tuple[str, str, str | None]] = [
    *((operator, text, None) for operator, texts in FIT.items() for text in texts),
    *(("NUM_GT", text, f'{NUMBER}. You provided "{text}".') for text in ("0x10", "Infinity", "NaN", "1_0", "1,5", "--5", "1e")),
    *(("NUM_GT", text, f'{NUMBER}. You provided "{text}".') for text in (" ", "+", "١")),
    *(("NUM_EQ", text, f"{SAFE}. You provided {shown}.") for text, shown in SHOWN.items()),
    *(
        ("DATE_BEFORE", text, f'{DATE}. You provided "{text}".')
        for text in ("x", "2024-13-01", "1e3", "99999999999999999", "now", "12:00")
    ),
    *(("SEMVER_LT", text, VERSION.format(text)) for text in VERSIONS),
    *(("REGEX", text, f"{REGEX} Error: error parsing regexp: {told}") for text, told in PATTERNS.items()),
]


@pytest.mark.parametrize(("operator", "text", "told"), VALUES)
def test_values(operator: str, text: str, told: str | None) -> None:
    """A value fits, or the message shows it as sent. A version needs all three numbers, and has no `v` and no spaces."""
    assert problem(constraint(operator, text)) == told


def test_patterns() -> None:
    """Every client can use a valid pattern. It cannot be inverted."""
    assert problem(constraint("REGEX", "^a.*z$")) is None
    assert str(problem(constraint("REGEX", r"\C"))).startswith(REGEX)
    assert problem(constraint("REGEX", "a", inverted=True)) == "REGEX operator cannot be inverted."
    assert problem(constraint("REGEX")) == REGEX
    too_large = f"{REGEX} Error: error parsing regexp: pattern too large - compile failed"
    assert problem(constraint("REGEX", "a{0,1000}" * 80)) == too_large, "no client would search it"


@pytest.mark.parametrize("operator", ["IN", "NOT_IN", "STR_CONTAINS", "STR_STARTS_WITH", "STR_ENDS_WITH"])
def test_lists_of_values(operator: str) -> None:
    """A list has at least one value. No value is empty or longer than 100 characters."""
    assert problem(constraint(operator)) == '"value" must contain at least 1 items. You provided [].'
    assert problem(constraint(operator, values=["a", ""])) == '"values[1]" is not allowed to be empty.'
    long = '"values[0]" length must be less than or equal to 100 characters long'
    assert str(problem(constraint(operator, values=["x" * 101]))).startswith(long)
    assert problem(constraint(operator, values=["x" * 100])) is None


@pytest.mark.parametrize("value", ["10.0.0.0/8", "10.1.2.3", "2001:db8::/32", "::1"])
def test_networks_that_fit(value: str) -> None:
    """IPv4 and IPv6 addresses and ranges are valid."""
    assert problem(constraint("IN_CIDR", values=[value])) is None


@pytest.mark.parametrize("value", ["ten", "10.0.0.0/33", "10.0.0", "::/129", "10.0.0.0 /8"])
def test_what_is_no_network(value: str) -> None:
    """The message shows the invalid value and its index. An empty list is refused."""
    told = f'"values[1]" must be an IP address or a CIDR range. You provided "{value}".'
    assert problem(constraint("IN_CIDR", values=["10.0.0.1", value])) == told
    assert problem(constraint("IN_CIDR")) == '"value" must contain at least 1 items. You provided [].'


def test_a_value_may_be_absent() -> None:
    """The value of a number or a date may be missing. The value of a version may not."""
    assert problem(constraint("NUM_EQ")) is None
    assert problem(constraint("DATE_AFTER")) is None
    assert problem(constraint("SEMVER_EQ")) == "the provided value is not a string."


def test_legal_values() -> None:
    """Each value is a legal value of its field; a field without legal values accepts any."""
    legal = {"userId": ["1", "x"]}
    assert problem(constraint("IN", values=["x", "1"]), legal) is None
    assert problem(constraint("IN", values=["x", "q"]), legal) == (
        "input values are not specified as a legal value on this context field"
    )
    assert problem(constraint("NUM_EQ", "1", values=["q"]), legal) is None
    assert problem(constraint("NUM_EQ", "2"), legal) == "2 is not specified as a legal value on this context field"
    assert problem(constraint("NUM_EQ"), legal) == "undefined is not specified as a legal value on this context field"
    assert problem(constraint("IN_CIDR", values=["10.0.0.1"]), legal) == (
        "input values are not specified as a legal value on this context field"
    )
    assert problem(constraint("IN", values=["q"]), {"userId": []}) is None
    assert problem(constraint("IN", contextName="", values=["q"])) == '"contextName" is not allowed to be empty.'


def test_constraints_get_a_list_of_values() -> None:
    """A constraint without `values` gets an empty list. The input does not change."""
    given = constraint("NUM_EQ", "1")
    assert check_constraints([given], {}) == [given | {"values": []}]
    assert "values" not in given


def test_limits() -> None:
    """The limits are 30 constraints and 250 values each. Stored constraints over a limit may stay if their number does not grow."""
    one = constraint("IN", values=["a"])
    wide = constraint("IN", values=["a"] * 251)
    check_limits([one] * 30)
    check_limits([one] * 31, before=[one] * 31)
    check_limits([wide], before=[wide])
    for constraints, before in (([one] * 31, []), ([one] * 32, [one] * 31), ([wide], []), ([wide] * 2, [wide])):
        with pytest.raises(CallerError, match="more than the established limit") as caught:
            check_limits(constraints, before)
        assert (caught.value.name, caught.value.status) == ("ExceedsLimitError", 400)
