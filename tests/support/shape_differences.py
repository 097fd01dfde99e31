"""The differences of version 7.5.1 of the real server from 8.2.0, whose shapes we use: each has a name and a test."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flagsvc.http.shapes import Detail

Details = Sequence[Detail]


@dataclass(frozen=True)
class Difference:
    """One difference: its name, what tells from the details of both servers that it is this one, and data that show it."""

    name: str
    is_it: Callable[[Details, Details], bool]
    data: Mapping[str, object]


def ours_says(pattern: str) -> Callable[[Details, Details], bool]:
    """Return what tells whether our first detail is of the pattern."""
    return lambda ours, theirs: bool(ours) and bool(re.search(pattern, ours[0]["message"]))


def theirs_says(pattern: str) -> Callable[[Details, Details], bool]:
    """Return what tells whether the real server's first detail is of the pattern."""
    return lambda ours, theirs: bool(theirs) and bool(re.search(pattern, theirs[0]["message"]))


def longer_list_of_operators(ours: Details, theirs: Details) -> bool:
    """Tell whether only the two further operators are named."""
    return bool(ours) and [
        {**item, "message": item["message"].replace('"SEMVER_GTE", "SEMVER_LTE", ', "")} for item in ours
    ] == list(theirs)


DROPPED = r"/features/\d+/(lastSeenAt|variants|strategies)|/featureTags/\d+/(type|value)"


def one_constraint(**members: object) -> Mapping[str, object]:
    """Return data with one strategy that has one constraint."""
    return {"featureStrategies": [{"name": "default", "constraints": [{"contextName": "appName", **members}]}]}


DIFFERENCES = (
    Difference(
        "8.2.0 knows SEMVER_GTE and SEMVER_LTE and names them",
        longer_list_of_operators,
        one_constraint(operator="NONE"),
    ),
    Difference(
        "7.5.1 refuses SEMVER_GTE and SEMVER_LTE",
        theirs_says(r'You provided "SEMVER_[GL]TE"'),
        one_constraint(operator="SEMVER_LTE", value="1.0.0"),
    ),
    Difference(
        "8.2.0 refuses an empty value of a constraint",
        ours_says(r"constraints/\d+/value` property must NOT have fewer than 1 characters"),
        one_constraint(operator="NUM_EQ", value=""),
    ),
    Difference(
        "7.5.1 knows no safeguards of an environment",
        theirs_says(r"included the `.*/safeguards` property"),
        {"featureEnvironments": [{"name": "a", "enabled": True, "safeguards": []}]},
    ),
    Difference(
        "8.2.0 dropped five deprecated properties",
        ours_says(rf"included the `/body/data({DROPPED})` property"),
        {"featureTags": [{"featureName": "a", "tagValue": "team", "type": "simple", "value": "team"}]},
    ),
)


def difference(ours: Details, theirs: Details) -> str:
    """Return the name of the difference between two lists of details; empty if no row explains it."""
    return next((row.name for row in DIFFERENCES if row.is_it(ours, theirs)), "")
