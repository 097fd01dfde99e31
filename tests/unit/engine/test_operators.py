"""Odd constraints, inverted and not, and what is made ready for operators. The corpus has every operator."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.context import Context
from flagsvc.engine.model import ConstraintSpec
from flagsvc.engine.operators import OPERATORS, compile_constraint
from flagsvc.engine.sliced_compilation import NETWORK_SETS, SETS
from flagsvc.engine.values.cidr import CidrSet
from support.evaluating import constraint, feature, holds, region, snapshot, strategy

# operator, the rest of the constraint, value of the field, whether it holds: what is missing or odd. The corpus has the others.
TABLE: list[tuple[str, dict[str, Any], str, bool]] = [
    ("IN", {}, "eu", False),
    ("IN", {"values": ["", None]}, "", False),
    ("IN", {"values": [7, True]}, "7", True),
    ("NUM_EQ", {}, "5", False),
    ("NUM_EQ", {"value": None}, "0", True),
    ("REGEX", {}, "b", False),
    ("REGEX", {"value": 5}, "5", False),
]


@pytest.mark.parametrize(("operator", "rest", "value", "expected"), TABLE)
def test_an_odd_constraint(operator: str, rest: dict[str, Any], value: str, expected: bool) -> None:
    """A constraint holds as its operator says. The inverted constraint holds exactly if it does not."""
    assert holds(constraint(operator, **rest), region(value)) is expected
    assert holds(constraint(operator, inverted=True, **rest), region(value)) is not expected


MOMENT = 1642860000000.0  # 2022-01-22T14:00:00Z


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("DATE_AFTER", MOMENT - 1, True),
        ("DATE_AFTER", None, True),
        pytest.param("DATE_AFTER", 10**400, False, id="after all time"),
        pytest.param("DATE_BEFORE", -(10**400), False, id="before all time"),
        ("DATE_BEFORE", True, False),
    ],
)
def test_odd_dates(operator: str, value: object, expected: bool) -> None:
    """A value that is no text is read as JavaScript's Date reads it; null is 1970."""
    context = Context(now=MOMENT)
    assert holds(constraint(operator, "region", value=value), context) is expected
    assert holds(constraint(operator, "region", value=value, inverted=True), context) is not expected


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
