"""Features on the admin API: archived, revived, deleted (the real server's archive endpoints)."""

from __future__ import annotations

from typing import Any

import pytest

from support.flagservers import EDITOR_SECRET, VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

PROJECT = "/api/admin/projects/default"
FEATURES = f"{PROJECT}/features"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": "O"}, {"id": "gone", "name": "G", "archived": True}],
    "features": [
        *({"name": name, "enabled": ["development"]} for name in ("a", "b", "parent", "child")),
        {"name": "elsewhere", "project": "other"},
        {"name": "lost", "project": "gone", "archived": True},
    ],
}


def prepare(client: AppClient) -> None:
    """Let `child` depend on `parent`."""
    client.post(f"{FEATURES}/child/dependencies", {"feature": "parent"})


def names(client: AppClient) -> list[str]:
    """Return the active features."""
    return [each["name"] for each in client.get(FEATURES).json()["features"]]


def test_there_and_back(client: AppClient) -> None:
    """A revived feature is switched off; a deleted feature cannot be revived."""
    assert client.post(f"{PROJECT}/archive", {"features": ["a", "b", "nosuch"]}).status == 202
    assert names(client) == ["parent", "child"]
    assert client.post(f"{FEATURES}/a/environments/development/on").json()["name"] == "ArchivedFeatureError"
    assert client.post(f"{PROJECT}/revive", {"features": ["a", "child"]}).status == 200
    shown = client.get(f"{FEATURES}/a").json()
    assert [each["enabled"] for each in shown["environments"]] == [False, False]
    still = client.get(f"{FEATURES}/child").json()
    assert still["environments"][0]["enabled"] is True
    assert client.post(f"{PROJECT}/delete", {"features": ["a", "b"]}).status == 200
    assert client.get(f"{FEATURES}/a").status == 200
    assert client.post("/api/admin/archive/revive/b").json()["name"] == "NotFoundError"


def test_one_by_its_name(client: AppClient) -> None:
    """A single feature is archived, revived and deleted; deleting ignores a feature that is not archived."""
    assert client.delete(f"{FEATURES}/a").status == 202
    assert client.post("/api/admin/archive/revive/a").status == 200
    assert client.delete("/api/admin/archive/a").status == 200
    assert "a" in names(client)
    client.delete(f"{FEATURES}/a")
    assert client.delete("/api/admin/archive/a").status == 200
    assert client.post(FEATURES, {"name": "a"}).status == 201
    assert client.delete(f"{FEATURES}/nosuch").status == 404
    assert client.post("/api/admin/archive/revive/lost").json()["message"] == "Active project with id gone does not exist"


def test_the_right_is_that_of_the_features_project(client: AppClient) -> None:
    """Where the path names no project, the permission is checked in the feature's own project."""
    client.delete(f"{FEATURES}/a")
    client.delete("/api/admin/projects/other/features/elsewhere")
    for method, url in (("POST", "/api/admin/archive/revive/"), ("DELETE", "/api/admin/archive/")):
        assert client.ask(method, f"{url}a", token=VIEWER_SECRET).status == 403
        assert client.ask(method, f"{url}elsewhere", token=EDITOR_SECRET).status == 403
        assert client.ask(method, f"{url}nosuch", token=EDITOR_SECRET).status == 403
        assert client.ask(method, f"{url}a", token=EDITOR_SECRET).status == 200
        assert client.ask(method, f"{url}nosuch").status == 404


def test_other_features_depend_on_it(client: AppClient) -> None:
    """A parent cannot be archived while a child depends on it, except together with the child."""
    for body, parents in ({"features": ["parent"]}, ["parent"]), ({"features": ["parent", "child"]}, []):
        found = client.post(f"{PROJECT}/archive/validate", body).json()
        assert found == {"parentsWithChildFeatures": parents, "hasDeletedDependencies": True}
    one = client.post(f"{PROJECT}/archive", {"features": ["parent"]})
    several = client.post(f"{PROJECT}/delete", {"features": ["parent", "a"]})
    assert (one.status, several.status) == (403, 403)
    assert "this feature" in one.json()["message"] and "those features" in several.json()["message"]
    assert client.delete(f"{FEATURES}/parent").status == 403
    assert client.delete("/api/admin/archive/parent").status == 403
    assert client.post(f"{PROJECT}/archive", {"features": ["parent", "child"]}).status == 202
    assert client.get(f"{PROJECT}/dependencies").json() is False
    free = client.post(f"{PROJECT}/archive/validate", {"features": ["parent"]}).json()
    assert free == {"parentsWithChildFeatures": [], "hasDeletedDependencies": False}


@pytest.mark.parametrize("act", ["archive", "revive", "delete"])
def test_features_of_another_project(client: AppClient, act: str) -> None:
    """If one named feature belongs to another project, none is changed."""
    answer = client.post(f"{PROJECT}/{act}", {"features": ["a", "elsewhere"]})
    assert (answer.status, answer.json()["name"]) == (403, "InvalidOperationError")
    assert '("other") does not match the project provided in request URL ("default")' in answer.json()["message"]
    assert "a" in names(client)
