"""Features on the admin API: created, shown, changed, copied (the real server's …/features)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from support.flagservers import VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
MOMENT = "2026-03-04T12:34:56.789Z"
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
BOTH = ["development", "production"]


def test_creating(client: AppClient) -> None:
    """A new feature is off in every environment of its project; absent members have defaults."""
    made = client.post(FEATURES, {"name": "a", "description": "", "extra": 1})
    expected = {
        "name": "a",
        "description": None,
        "type": "release",
        "project": "default",
        "stale": False,
        "createdAt": MOMENT,
        "lastSeenAt": None,
        "impressionData": False,
        "archived": False,
    }
    assert (made.status, made.json()) == (201, expected)
    shown = client.get(f"{FEATURES}/a", token=VIEWER_SECRET).json()
    assert [(each["name"], each["enabled"], each["strategies"]) for each in shown["environments"]] == [
        (name, False, []) for name in BOTH
    ]
    assert shown["createdBy"] == {"id": 1, "name": "boss", "imageUrl": ""}
    assert shown["collaborators"] == {"users": [shown["createdBy"]]}


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


def test_replacing(client: AppClient) -> None:
    """Absent members get their defaults; the name does not change; `archived` archives and revives."""
    client.post(FEATURES, {"name": "a", "description": "x", "type": "experiment", "impressionData": True})
    changed = client.put(f"{FEATURES}/a", {"stale": True}).json()
    assert (changed["description"], changed["type"], changed["stale"]) == (None, "release", True)
    assert client.put(f"{FEATURES}/a", {"name": "b"}).status == 400
    assert client.put(f"{FEATURES}/nosuch", {}).status == 404
    away = client.put(f"{FEATURES}/a", {"archived": True}).json()
    assert (away["archived"], away["archivedAt"]) == (True, MOMENT)
    assert client.get(f"{FEATURES}/a").status == 404
    assert client.put(f"{FEATURES}/a", {}).json()["archived"] is False


def test_patching(client: AppClient) -> None:
    """A JSON Patch changes the description of a feature; all problems of the result are reported."""
    client.post(FEATURES, {"name": "a", "description": "x"})
    url = f"{FEATURES}/a"
    changed = client.ask("PATCH", url, [{"op": "replace", "path": "/stale", "value": "true"}]).json()
    assert (changed["stale"], changed["description"]) == (True, "x")
    wrong = client.ask("PATCH", url, [{"op": "add", "path": f"/{name}", "value": 5} for name in ("stale", "type")])
    assert [each["message"] for each in wrong.json()["details"]] == [
        '"stale" must be a boolean. You provided 5.',
        '"type" must be a string. You provided 5.',
    ]
    assert client.ask("PATCH", url, [{"op": "remove", "path": "/name"}]).status == 400
    assert client.ask("PATCH", url, [{"op": "replace", "path": "/variants/0", "value": 1}]).status == 403
    assert client.ask("PATCH", url, [{"op": "test", "path": "/type", "value": "x"}]).status == 400
    assert client.ask("PATCH", f"{FEATURES}/nosuch", []).status == 404


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
