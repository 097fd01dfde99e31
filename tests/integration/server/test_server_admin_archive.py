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
