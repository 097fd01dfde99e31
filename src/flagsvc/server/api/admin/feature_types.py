"""`/api/admin/feature-types`: the types of features. They are the same on every server."""

from __future__ import annotations

from typing import Any

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.shapes import feature_bodies as shapes

TYPES: tuple[tuple[str, str, str, int | None], ...] = (
    ("release", "Release", "Holds back what is new until it may be released.", 40),
    ("experiment", "Experiment", "Shows different callers different forms of something, to compare them.", 40),
    ("operational", "Operational", "Steers how something is rolled out or run.", 7),
    ("kill-switch", "Kill switch", "Turns off in a hurry what must not run.", None),
    ("permission", "Permission", "Decides who is allowed something.", None),
)
"""Id, name, purpose, and expected lifetime in days."""
FIELDS = ("id", "name", "description", "lifetimeDays")


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer every feature type."""
    found: list[dict[str, Any]] = [dict(zip(FIELDS, row, strict=True)) for row in TYPES]
    return ApiAnswer({"version": 1, "types": found})


ROUTES = (
    Route(
        path="/api/admin/feature-types",
        handler=list_all,
        operation="getAllFeatureTypes",
        summary="List the feature types",
        tag="Feature types",
        result=shapes.FEATURE_TYPES,
        in_memory=True,
    ),
)
