"""Our shapes beside npm unleash-server: the same bodies are refused, with the same items (import validation 2; 3; 7).

`SHAPE_BODIES=5000` asks for more bodies than a usual run sends, `SHAPE_SEED=7` for others.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from flagsvc.http.shapes import Detail, Shape, ShapeError, check, components
from flagsvc.server.shapes.batch import EXPORT_QUERY, IMPORT, VALIDATION
from support import processes, shape_bodies

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
    Difference("8.2.0 knows SEMVER_GTE and SEMVER_LTE and names them", longer_list_of_operators, one_constraint(operator="NONE")),
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


BODIES = int(os.environ.get("SHAPE_BODIES", "300"))
SEED = int(os.environ.get("SHAPE_SEED", "1"))


@pytest.fixture(scope="module")
def real() -> Iterator[http.client.HTTPConnection]:
    """Give a connection to a real server that nothing was ever written to."""
    with processes.postgresql() as database, processes.unleash_server(database) as server:
        parts = urlsplit(server.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        with contextlib.closing(connection):
            yield connection


@dataclass(frozen=True)
class Operation:
    """One operation: its path, the shape of its body and what makes bodies."""

    path: str
    shape: Shape
    make: Callable[[random.Random], Any]


OPERATIONS = (Operation("validate", IMPORT, shape_bodies.import_body), Operation("export", EXPORT_QUERY, shape_bodies.export_body))


def their_details(connection: http.client.HTTPConnection, path: str, body: bytes) -> list[Detail]:
    """Return the real server's error items for a body; empty if the schema accepts it."""
    headers = {"Authorization": processes.ADMIN_TOKEN, "Content-Type": "application/json"}
    connection.request("POST", f"/api/admin/features-batch/{path}", body, headers)
    response = connection.getresponse()
    content = response.read()
    assert response.status in (200, 400), content
    answer = json.loads(content)
    return list(answer["details"]) if response.status == 400 else []


def our_details(shape: Shape, body: bytes) -> list[Detail]:
    """Return our error items for a body; empty if it is valid."""
    try:
        check(shape, json.loads(body))
    except ShapeError as error:
        return error.details
    return []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.path)
def test_the_real_server_refuses_the_same_bodies_with_the_same_items(
    real: http.client.HTTPConnection, operation: Operation
) -> None:
    """A mutated body is refused by both or by none, with equal items in path, message and order."""
    refused = 0
    for number in range(BODIES):
        body = json.dumps(operation.make(random.Random(f"{SEED} {operation.path} {number}"))).encode()
        theirs, ours = their_details(real, operation.path, body), our_details(operation.shape, body)
        refused += bool(theirs)
        same = [list(item.items()) for item in ours] == [list(item.items()) for item in theirs]
        assert same or difference(ours, theirs), (number, body, ours, theirs)
    assert BODIES // 10 < refused < BODIES, "bodies of both kinds are made"


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.name)
def test_a_difference_that_is_named_is_there(real: http.client.HTTPConnection, row: Difference) -> None:
    """Every named difference can be seen: the servers answer its data differently, and the difference is recognised."""
    data = {"features": [], "featureStrategies": [], "tagTypes": [], **row.data}
    body = json.dumps({"project": "default", "environment": "development", "data": data}).encode()
    theirs, ours = their_details(real, "validate", body), our_details(IMPORT, body)
    assert ours != theirs
    assert difference(ours, theirs) == row.name


def test_the_components_of_a_batch_are_named_as_the_real_ones(real: http.client.HTTPConnection) -> None:
    """Every component of our batch shapes is one of the real server's, with the same required properties in order."""
    real.request("GET", "/docs/openapi.json")
    theirs = json.loads(real.getresponse().read())["components"]["schemas"]
    ours = components((IMPORT, VALIDATION, EXPORT_QUERY))
    assert "importTogglesValidateItemSchema" in ours
    for name, schema in ours.items():
        assert schema.get("required") == theirs[name].get("required"), name
        dropped = {"lastSeenAt", "variants", "strategies", "type", "value"} if schema.get("properties") else set()
        kept = [key for key in schema.get("properties", {}) if key != "safeguards"]
        assert kept == [key for key in theirs[name].get("properties", {}) if key in kept], name
        assert set(theirs[name].get("properties", {})) - set(kept) <= dropped | {"safeguards"}, name
