"""State exports of old servers, as `/api/admin/state/export` gave them: one for each version, each with one flag."""

from __future__ import annotations

from typing import Any

FLAG = {"name": "a", "type": "release", "project": "default", "stale": False}
INLINE = FLAG | {"enabled": True, "strategies": [{"name": "default", "parameters": {}}]}
SHARED: dict[str, Any] = {
    "projects": [{"id": "default", "name": "Default"}],
    "tagTypes": [{"name": "simple", "description": "", "icon": "#"}],
    "tags": [],
    "featureTags": [],
}
STRATEGY = {"id": "1", "featureName": "a", "projectId": "default", "environment": "default", "strategyName": "default"}
PLACED: dict[str, Any] = {
    "featureStrategies": [STRATEGY | {"parameters": {}, "constraints": []}],
    "environments": [{"name": "default", "type": "production", "enabled": True}],
    "featureEnvironments": [{"featureName": "a", "environment": "default", "enabled": True}],
}
EXPORTS: dict[int, dict[str, Any]] = {
    1: {"version": 1, "features": [INLINE], "strategies": []},
    2: {"version": 2, "features": [INLINE], "strategies": [], **SHARED},
    3: {"version": 3, "features": [FLAG], "strategies": [], **SHARED, **PLACED},
    4: {"version": 4, "features": [FLAG], "strategies": [], **SHARED, **PLACED} | {"segments": [], "featureStrategySegments": []},
}
