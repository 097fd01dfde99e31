"""Features on the admin API: created, shown, changed, copied (the real server's …/features)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from support.flagservers import AppClient

pytestmark = pytest.mark.one_database

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
FEATURES = "/api/admin/projects/default/features"
GIVEN: dict[str, Any] = {
    "projects": [
        {"id": "named", "name": "N", "featureNaming": {"pattern": "a.*", "example": "abc", "description": "words"}},
        {"id": "frozen", "name": "F", "featureNaming": {"pattern": "(?=a)(a|aa)+[bc]"}},
        {"id": "small", "name": "S", "featureLimit": 1},
        {"id": "gone", "name": "G", "archived": True},
        {"id": "narrow", "name": "W", "environments": ["development"]},
    ],
    "features": [{"name": "old", "archived": True}],
}


def test_the_limit_of_a_project(client: AppClient) -> None:
    """A project accepts active features up to its limit."""
    url = "/api/admin/projects/small/features"
    assert client.post(url, {"name": "a"}).status == 201
    answer = client.post(url, {"name": "b"})
    assert (answer.status, answer.json()["name"]) == (403, "InvalidOperationError")
    assert client.delete(f"{url}/a").status == 202
    assert client.post(url, {"name": "b"}).status == 201


def test_a_naming_pattern_that_would_not_end(client: AppClient) -> None:
    """Each way to create a feature refuses a name whose check takes too long, and accepts a name that can be checked."""
    frozen, name = "/api/admin/projects/frozen/features", "a" * 62
    assert client.post(frozen, {"name": "aab"}).status == 201
    answers = [
        client.post("/api/admin/features/validate", {"name": name, "projectId": "frozen"}),
        client.post(frozen, {"name": name}),
        client.post(f"{frozen}/aab/clone", {"name": name}),
    ]
    for answer in answers:
        assert (answer.status, answer.json()["name"]) == (400, "PatternError")
        assert "it takes too long" in answer.json()["message"]


def test_tags(client: AppClient) -> None:
    """A new feature may have tags that do not exist yet; lists can be filtered by tags."""
    tags = [{"type": "simple", "value": "team"}, {"type": "simple", "value": "team"}]
    assert client.post(FEATURES, {"name": "a", "tags": tags}).status == 201
    assert client.post(FEATURES, {"name": "b"}).status == 201
    found = client.get(f"{FEATURES}?tag=simple:team&tag=simple:other").json()["features"]
    assert [(each["name"], each["tags"]) for each in found] == [("a", [{"value": "team", "type": "simple"}])]
    assert client.get(f"{FEATURES}?tag=simple:other").json()["features"] == []
    assert client.get(f"{FEATURES}?tag=bad").status == 400
    unknown = client.post(FEATURES, {"name": "x", "tags": [{"type": "nosuch", "value": "some"}]})
    assert unknown.status == 400 and "Tag type 'nosuch' does not exist" in unknown.text
    assert [each["name"] for each in client.get(f"{FEATURES}?namePrefix=B").json()["features"]] == ["b"]
    assert client.get(f"{FEATURES}?namePrefix=%25").json()["features"] != []
    assert client.get(f"{FEATURES}?namePrefix=_").json()["features"] == []


def test_copying(client: AppClient) -> None:
    """A copy has the feature's strategies, variants, tags and parent. The copy is off, and its name is the groupId."""
    for name in ("parent", "a"):
        client.post(FEATURES, {"name": name, "tags": [{"type": "simple", "value": "team"}]})
    client.post(f"{FEATURES}/a/environments/development/on")
    variants = {"variants": [{"name": "v", "weight": 1}], "environments": ["production"]}
    assert client.put(f"{FEATURES}/a/variants-batch", variants).status == 200
    assert client.post(f"{FEATURES}/a/dependencies", {"feature": "parent"}).status == 200
    assert client.post(f"{FEATURES}/a/clone", {"name": "b"}).status == 201
    assert client.post(f"{FEATURES}/a/clone", {"name": "c", "replaceGroupId": False}).status == 201
    shown = client.get(f"{FEATURES}/b?variantEnvironments=true").json()
    assert [each["enabled"] for each in shown["environments"]] == [False, False]
    assert shown["environments"][0]["strategies"][0]["parameters"]["groupId"] == "b"
    assert shown["environments"][1]["variants"][0]["name"] == "v"
    assert shown["dependencies"] == [{"feature": "parent", "enabled": True, "variants": []}]
    kept = client.get(f"{FEATURES}/c").json()["environments"][0]["strategies"][0]
    assert kept["parameters"]["groupId"] == "a"
    assert client.post(f"{FEATURES}/a/clone", {"name": "b"}).status == 409
    assert client.post(f"{FEATURES}/old/clone", {"name": "d"}).status == 404
    missing = client.post("/api/admin/projects/narrow/features/a/clone", {"name": "e"})
    assert missing.status == 404 and "Could not find e in production" in missing.text
