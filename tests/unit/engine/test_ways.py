"""How a toggle is decided: a fact of the toggle, not of a context."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.ways import ALIKE, BY_CONTEXT, BY_SHARE, SWITCHED_OFF, way_of

EVERYBODY = {"name": "default"}
LISTED = {"name": "userWithId", "parameters": {"userIds": "7"}}
IN_EU = {"name": "default", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}
TWO = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]


def rollout(share: int, stickiness: str = "default", **more: Any) -> dict[str, Any]:
    """Return a strategy that admits a share."""
    return {"name": "flexibleRollout", "parameters": {"rollout": str(share), "stickiness": stickiness, "groupId": "g"}, **more}


@pytest.mark.parametrize(
    ("feature", "way"),
    [
        ({"strategies": [EVERYBODY]}, ALIKE),
        ({"strategies": []}, ALIKE),
        ({"strategies": [rollout(0)]}, ALIKE),
        ({"strategies": [EVERYBODY], "variants": TWO[:1]}, ALIKE),
        ({"strategies": [EVERYBODY], "enabled": False}, SWITCHED_OFF),
        ({"strategies": [IN_EU]}, BY_CONTEXT),
        ({"strategies": [LISTED, IN_EU]}, BY_CONTEXT),
        ({"strategies": [rollout(100, "userId")]}, BY_CONTEXT),
        ({"strategies": [IN_EU], "variants": TWO[:1]}, BY_CONTEXT),
        ({"strategies": [EVERYBODY], "dependencies": [{"feature": "in-eu"}]}, BY_CONTEXT),
        ({"strategies": [rollout(50)]}, BY_SHARE),
        ({"strategies": [rollout(50, "random")]}, BY_SHARE),
        ({"strategies": [LISTED, rollout(1, "userId")]}, BY_SHARE),
        ({"strategies": [EVERYBODY], "variants": TWO}, BY_SHARE),
        ({"strategies": [rollout(100, "userId", variants=TWO)]}, BY_SHARE),
        ({"strategies": [EVERYBODY], "dependencies": [{"feature": "drawn"}]}, BY_SHARE),
    ],
)
def test_the_way(feature: dict[str, Any], way: int) -> None:
    """A share or a draw anywhere in it, or in its parent, decides; else the context; else nothing does."""
    parents = [{"name": "in-eu", "enabled": True, "strategies": [IN_EU]}]
    parents.append({"name": "drawn", "enabled": True, "strategies": [EVERYBODY], "variants": TWO})
    document = {"features": [*parents, {"name": "f", "enabled": True, **feature}]}
    assert way_of(compile_document(document, CompileOptions()).snapshot.toggles["f"]) == way
