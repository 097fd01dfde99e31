"""Every operator of constraints, inverted and not, with the field there and not."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.context import Context
from flagsvc.engine.model import ConstraintSpec
from flagsvc.engine.operators import OPERATORS, compile_constraint
from flagsvc.engine.sliced_compilation import NETWORK_SETS, SETS
from flagsvc.engine.values.cidr import CidrSet
from support.evaluating import constraint, feature, holds, is_on, region, snapshot, strategy

# operator, the rest of the constraint, value of the field (None: absent), whether it holds
TABLE: list[tuple[str, dict[str, Any], str | None, bool]] = [
    ("IN", {"values": ["eu", "us"]}, "eu", True),
    ("IN", {"values": ["eu", "us"]}, "EU", False),
    ("IN", {"values": [" eu "]}, "eu", True),
    ("IN", {"values": []}, "eu", False),
    ("IN", {}, "eu", False),
    ("IN", {"values": ["eu"]}, None, False),
    ("IN", {"values": ["", None]}, "", False),
    ("IN", {"values": [7, True]}, "7", True),
    ("NOT_IN", {"values": ["eu"]}, "us", True),
    ("NOT_IN", {"values": ["eu"]}, "eu", False),
    ("NOT_IN", {"values": ["eu"]}, None, True),
    ("STR_STARTS_WITH", {"values": ["ab", "x"]}, "abc", True),
    ("STR_STARTS_WITH", {"values": ["AB"]}, "abc", False),
    ("STR_STARTS_WITH", {"values": ["AB"], "caseInsensitive": True}, "aBc", True),
    ("STR_STARTS_WITH", {"values": ["ab"]}, None, False),
    ("STR_ENDS_WITH", {"values": ["bc"]}, "abc", True),
    ("STR_ENDS_WITH", {"values": ["ab"]}, "abc", False),
    ("STR_CONTAINS", {"values": ["zz", "b"]}, "abc", True),
    ("STR_CONTAINS", {"values": ["z"]}, "abc", False),
    ("STR_CONTAINS", {"values": [" "]}, "anything", True),
    ("STR_CONTAINS", {"values": [""]}, "anything", False),
    ("NUM_EQ", {"value": "5"}, "5.0", True),
    ("NUM_EQ", {"value": 5}, "0x5", True),
    ("NUM_EQ", {"value": "0"}, "", True),
    ("NUM_EQ", {"value": "5"}, "five", False),
    ("NUM_EQ", {"value": "five"}, "5", False),
    ("NUM_EQ", {}, "5", False),
    ("NUM_EQ", {"value": None}, "0", True),
    ("NUM_EQ", {"value": "5"}, None, False),
    ("NUM_GT", {"value": "5"}, "6", True),
    ("NUM_GT", {"value": "5"}, "5", False),
    ("NUM_GTE", {"value": "5"}, "5", True),
    ("NUM_GTE", {"value": "5"}, "4", False),
    ("NUM_LT", {"value": "5"}, "-Infinity", True),
    ("NUM_LT", {"value": "5"}, "5", False),
    ("NUM_LTE", {"value": "5"}, "5", True),
    ("NUM_LTE", {"value": "5"}, "6", False),
    ("SEMVER_EQ", {"value": "v1.2.3"}, "1.2.3+build", True),
    ("SEMVER_EQ", {"value": "1.2.3"}, "v1.2.3", False),
    ("SEMVER_EQ", {"value": "1.2"}, "1.2.0", False),
    ("SEMVER_EQ", {"value": "1.2.3"}, None, False),
    ("SEMVER_GT", {"value": "1.2.3"}, "1.10.0", True),
    ("SEMVER_GT", {"value": "1.2.3"}, "1.2.3-beta", False),
    ("SEMVER_GTE", {"value": "1.2.3"}, "1.2.3", True),
    ("SEMVER_LT", {"value": "1.2.3"}, "1.2.3-beta", True),
    ("SEMVER_LT", {"value": "1.2.3"}, "1.2.3", False),
    ("SEMVER_LTE", {"value": "1.2.3"}, "1.2.3", True),
    ("SEMVER_LTE", {"value": "1.2.3"}, "1.2.4", False),
    ("REGEX", {"value": "b+"}, "abbc", True),
    ("REGEX", {"value": "^b"}, "abbc", False),
    ("REGEX", {"value": "B", "caseInsensitive": True}, "abbc", True),
    ("REGEX", {"value": "("}, "(", False),
    ("REGEX", {"value": "b"}, None, False),
    ("REGEX", {}, "b", False),
    ("REGEX", {"value": 5}, "5", False),
    ("IN_CIDR", {"values": ["10.0.0.0/8", "nonsense"]}, "10.9.9.9", True),
    ("IN_CIDR", {"values": ["10.0.0.0/8"]}, "11.0.0.1", False),
    ("IN_CIDR", {"values": ["2001:db8::/32"]}, "2001:db8::1", True),
    ("IN_CIDR", {"values": ["10.0.0.0/8"]}, None, False),
]


@pytest.mark.parametrize(("operator", "rest", "value", "expected"), TABLE)
def test_an_operator(operator: str, rest: dict[str, Any], value: str | None, expected: bool) -> None:
    """A constraint holds as its operator says. The inverted constraint holds exactly if it does not."""
    assert holds(constraint(operator, **rest), region(value)) is expected
    assert holds(constraint(operator, inverted=True, **rest), region(value)) is not expected


MOMENT = 1642860000000.0  # 2022-01-22T14:00:00Z


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("DATE_AFTER", "2022-01-22T13:59:59Z", True),
        ("DATE_AFTER", "2022-01-22T14:00:00Z", False),
        ("DATE_AFTER", "not a date", False),
        ("DATE_AFTER", MOMENT - 1, True),
        ("DATE_AFTER", None, True),
        pytest.param("DATE_AFTER", 10**400, False, id="after all time"),
        pytest.param("DATE_BEFORE", -(10**400), False, id="before all time"),
        ("DATE_BEFORE", True, False),
        ("DATE_BEFORE", "2022-01-22T14:00:01.000Z", True),
        ("DATE_BEFORE", "2022-01-22T14:00:00Z", False),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_date_operators(operator: str, value: object, expected: bool, given: bool) -> None:
    """Dates are compared with the context's current time, else with now, for any field of the constraint."""
    context = Context(current_time=MOMENT) if given else Context(now=MOMENT)
    assert holds(constraint(operator, "region", value=value), context) is expected
    assert holds(constraint(operator, "region", value=value, inverted=True), context) is not expected


def test_a_date_constraint_without_a_value_is_false() -> None:
    """Nothing given is no date."""
    assert not holds(constraint("DATE_AFTER"), Context(now=MOMENT))


@pytest.mark.parametrize("inverted", [True, False])
def test_an_unknown_operator_is_false_inverted_or_not(inverted: bool) -> None:
    """A constraint with an unknown operator, or null, never holds, inverted or not."""
    assert not holds(constraint("NOT_A_VALID_OPERATOR", values=["eu"], inverted=inverted), region("eu"))
    assert not holds(None, region("eu"))


def test_every_operator_is_in_the_table_above() -> None:
    """No operator is left untested."""
    tested = {operator for operator, *_ in TABLE} | {"DATE_AFTER", "DATE_BEFORE"}
    assert tested == set(OPERATORS)


def test_a_long_list_is_made_ready_for_its_operator() -> None:
    """The values of a long list become a set, or networks, exactly if the operator's predicate uses them so."""
    sets: set[str] = set()
    networks: set[str] = set()
    for name in OPERATORS:
        spec = ConstraintSpec("", "region", name, ("10.0.0.0/8",), "1.2.3", False, False)
        spec.members, spec.networks = {"10.0.0.0/8"}, CidrSet(["10.0.0.0/8"])
        made = compile_constraint(spec)
        sets |= {name} if getattr(made, "values", None) is spec.members else set()
        networks |= {name} if getattr(made, "networks", None) is spec.networks else set()
    assert sets == set(SETS) == {"IN", "NOT_IN"}
    assert networks == set(NETWORK_SETS) == {"IN_CIDR"}


def test_equal_constraints_are_one_predicate_and_others_are_not() -> None:
    """Equal constraints share one slot of the run's memory; a number and a text of the same digits stay two."""
    same = constraint("NUM_GT", value="5")
    other = constraint("NUM_GT", value=5)
    made = snapshot(*[feature(f"f{at}", strategy("default", same, other)) for at in range(3)])
    assert len(made.memory.predicates) == 2
    assert made.toggles["f0"].strategies[0].conditions == made.toggles["f2"].strategies[0].conditions
    single = snapshot(feature("f", strategy("default", same, other)))
    assert len(single.memory.predicates) == 0


def test_all_constraints_of_a_strategy_must_hold() -> None:
    """One constraint that does not hold is enough to switch the strategy off; another strategy still counts."""
    yes, no = constraint("IN", values=["eu"]), constraint("IN", values=["us"])
    assert is_on(feature("f", strategy("default", yes, yes)), region("eu"))
    assert not is_on(feature("f", strategy("default", yes, no)), region("eu"))
    assert is_on(feature("f", strategy("default", no), strategy("default", yes)), region("eu"))
