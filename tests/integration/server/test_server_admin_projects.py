"""Projects, kinds of features and constraints on the admin API (the real server's /api/admin/projects and the like)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from flagsvc.server.store.resources.usage import UsageCount, add_counts
from support.flagservers import VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
MOMENT = "2026-03-04T12:34:56.789Z"
URL = "/api/admin/projects"
NAMING = {"pattern": "a.*", "example": "abc", "description": "words"}
GIVEN: dict[str, Any] = {
    "projects": [
        {"id": "named", "name": "A", "featureNaming": NAMING, "featureLimit": 5, "environments": ["production"]},
        {"id": "gone", "name": "Gone", "archived": True},
    ],
    "features": [
        *({"name": name} for name in "abc"),
        {"name": "d", "stale": True, "type": "experiment"},
        {"name": "old", "archived": True, "stale": True},
    ],
    "users": [{"name": "member", "projectRoles": [{"project": "named", "role": "member"}]}],
}


def test_the_list(client: AppClient) -> None:
    """The list is sorted by name, archived projects come separately, and each project shows its counts."""
    client.post(f"{URL}/default/features", {"name": "new"})
    with client.server.store.recording() as tx:
        add_counts(tx, [UsageCount("a", "app", "development", NOW, 1, 0, {})])
    listed = client.get(URL, token=VIEWER_SECRET).json()["projects"]
    assert [each["id"] for each in listed] == ["named", "default"]
    assert (listed[0]["memberCount"], listed[0]["featureCount"], listed[0]["health"]) == (1, 0, 100)
    default = listed[1]
    assert (default["featureCount"], default["health"], default["technicalDebt"]) == (5, 80, 20)
    assert (default["lastUpdatedAt"], default["lastReportedFlagUsage"]) == (MOMENT, MOMENT)
    assert listed[0]["lastReportedFlagUsage"] is None
    assert [each["id"] for each in client.get(f"{URL}?archived=true").json()["projects"]] == ["gone"]


def test_one(client: AppClient) -> None:
    """A project shows its rules, its environments and the types of its features."""
    named = client.get(f"{URL}/named/overview").json()
    assert (named["featureNaming"], named["featureLimit"], named["members"]) == (NAMING, 5, 1)
    assert named["environments"] == [{"environment": "production"}]
    default = client.get(f"{URL}/default/overview").json()
    assert default["featureTypeCounts"] == [{"type": "experiment", "count": 1}, {"type": "release", "count": 3}]
    assert "archivedAt" not in default
    assert client.get(f"{URL}/gone/overview").json()["archivedAt"] == MOMENT
    assert client.get(f"{URL}/nosuch/overview").json()["message"] == "No project found"


def test_the_health_of_one(client: AppClient) -> None:
    """The answer counts the active features that are stale, and lists the features."""
    report = client.get(f"{URL}/default/health-report").json()
    assert (report["activeCount"], report["staleCount"], report["health"]) == (3, 1, 75)
    assert [each["name"] for each in report["features"]] == ["a", "b", "c", "d"]
    assert client.get(f"{URL}/nosuch/health-report").status == 404


def test_kinds_of_features(client: AppClient) -> None:
    """The list has each type that a feature can have."""
    types = client.get("/api/admin/feature-types", token=VIEWER_SECRET).json()["types"]
    days = {each["id"]: each["lifetimeDays"] for each in types}
    assert days == {"release": 40, "experiment": 40, "operational": 7, "kill-switch": None, "permission": None}
    for kind in days:
        assert client.post(f"{URL}/default/features", {"name": f"of-{kind}", "type": kind}).status == 201


def test_checking_a_constraint(client: AppClient) -> None:
    """The answer is 204, or the error in the constraint."""
    url = "/api/admin/constraints/validate"
    good = {"contextName": "userId", "operator": "IN", "values": ["1"]}
    assert client.post(url, good, token=VIEWER_SECRET).status == 204
    bad = client.post(url, good | {"values": []}).json()
    assert bad["details"] == [{"message": '"value" must contain at least 1 items. You provided [].'}]
    assert client.post(url, {}).json()["details"][0]["path"] == "/body/contextName"
