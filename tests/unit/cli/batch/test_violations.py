"""Places of violations: the server's paths become places in the file with the name of the item."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.cli.batch.server_errors import read_violation

REQUEST: dict[str, Any] = {
    "project": "p",
    "data": {
        "features": [{"name": "one"}, {"type": "x"}, "text", {"name": 7}],
        "featureStrategies": [
            {"name": "default", "featureName": "one"},
            {"name": "default", "constraints": [{"operator": "LIKE"}]},
        ],
        "featureEnvironments": [{"featureName": "one", "name": "other"}],
        "contextFields": [{"name": "region"}],
        "featureTags": [{"featureName": "one"}],
        "segments": [{"id": 3}],
        "tagTypes": [{"name": "simple\x1b"}],
        "dependencies": [{"feature": "child"}],
        "links": [{"feature": "one"}],
    },
}
ENUM = 'one of the allowed values: "IN". You provided "LIKE", which is not valid. Please use one of the allowed values instead..'


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/body/data/features/0/name", "data.features[0].name (one)"),
        ("/body/data/features/0", "data.features[0] (one)"),
        ("/body/data/features/1/name", "data.features[1].name"),
        ("/body/data/features/2", "data.features[2]"),
        ("/body/data/features/3/type", "data.features[3].type (7)"),
        ("/body/data/features/9/name", "data.features[9].name"),
        ("/body/data/featureStrategies/0/parameters/a~1b", "data.featureStrategies[0].parameters.a/b (one)"),
        ("/body/data/featureStrategies/1/constraints/0/values/2", "data.featureStrategies[1].constraints[0].values[2] (default)"),
        ("/body/data/featureEnvironments/0", "data.featureEnvironments[0] (one)"),
        ("/body/data/contextFields/0", "data.contextFields[0] (region)"),
        ("/body/data/featureTags/0", "data.featureTags[0] (one)"),
        ("/body/data/segments/0/name", "data.segments[0].name (3)"),
        ("/body/data/tagTypes/0", "data.tagTypes[0] (simple\\x1b)"),
        ("/body/data/dependencies/0", "data.dependencies[0] (child)"),
        ("/body/data/links/0/links/1/url", "data.links[0].links[1].url (one)"),
        ("/body/data/nonsense/0", "data.nonsense[0]"),
        ("/body/data", "data"),
        ("/body/project", "project"),
        ("/body", "the file"),
        ("operator", "data.featureStrategies[1].constraints[0].operator (default)"),
        ("stage", "stage"),
    ],
)  # fmt: skip
def test_places(path: str, place: str) -> None:
    """The place in the file includes the name of the item. For an enum with only a property name, the value finds the place."""
    message = f"The `{path}` property must be {ENUM}" if "/" not in path else f"The `{path}` property must be string."
    found = read_violation({"path": path, "message": message}, REQUEST, bare=False)
    assert found.place == place and found.path == path
    assert "/body" not in found.message and not found.message.endswith(".")


def test_other_forms() -> None:
    """In a file with only the data set, places do not begin with `data`. A message of an unknown form is shown unchanged."""
    detail = {"path": "/body/data/features/0", "message": "The `/body/data/features/0` object, in `/body/data`."}
    found = read_violation(detail, REQUEST, bare=True)
    assert (found.place, found.message) == ("features[0] (one)", "The `features[0]` object, in `the file`")
    assert read_violation({"path": "", "message": "odd"}, REQUEST, bare=True) == ("the file", "odd", "")
    odd = {"path": "operator", "message": 'You provided "\\q", which is not valid'}
    assert read_violation(odd, REQUEST, bare=True).place == "operator"
