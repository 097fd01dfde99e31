"""An empty server's answers, flags and tokens for tests of `flagsvc move` between two fake servers."""

from __future__ import annotations

from typing import Any

from support.fake_admin import BATCH, EMPTY, FakeAdmin

NOTHING: dict[str, Any] = {
    "/api/admin/strategies": {"strategies": []},
    "/api/admin/context": [],
    "/api/admin/tag-types": {"tagTypes": []},
    "/api/admin/segments": {"segments": []},
    "/api/admin/search/features": {"features": [], "total": 0},
    "/api/admin/user-admin": {"users": [], "rootRoles": []},
    "/api/admin/projects": {"projects": [{"id": "default"}]},
    "/api/admin/environments": {"environments": [{"name": "production"}, {"name": "qa"}]},
    "/api/admin/environments/project/default": {"environments": [{"name": "production"}]},
}
"""The answers of the admin API of an empty server."""
FLAGS = EMPTY | {
    "features": [{"name": name, "type": "release", "project": "default"} for name in ("dark-mode", "fresh")],
    "featureEnvironments": [{"name": "fresh", "featureName": "fresh", "enabled": True}],
    "featureStrategies": [{"name": "default", "featureName": "fresh", "id": "1"}],
}
SECRETS = {"FLAGSVC_FROM_TOKEN": "user:from-s3cret", "FLAGSVC_TO_TOKEN": "user:to-s3cret"}


def writes(server: FakeAdmin) -> list[tuple[str, str]]:
    """Return the requests that changed a server."""
    harmless = (f"{BATCH}/export", f"{BATCH}/validate", f"{BATCH}/import/dry-run", "/api/admin/constraints/validate")
    return [(asked.method, asked.path) for asked in server.asked if asked.method != "GET" and asked.path not in harmless]
