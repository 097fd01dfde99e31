"""Features in environments on the admin API: on, off, variants (import validation 6.3, steps 2 and 8)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from flagsvc.server.store.resources.strategies import MAX_STRATEGIES
from support.flagservers import EDITOR_SECRET, VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

FEATURES = "/api/admin/projects/default/features"
STATE = f"{FEATURES}/a/environments/development"
BULK = "/api/admin/projects/default/bulk_features/environments/development"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": "O"}],
    "features": [*({"name": name} for name in ("a", "b")), {"name": "elsewhere", "project": "other"}],
}


@pytest.mark.parametrize("query", ["", "?shouldActivateDisabledStrategies=true"])
def test_many_are_switched_as_each_alone(client: AppClient, query: str) -> None:
    """A switch of several features records what switches of each of them record, in the same order."""
    for name, disabled in (("a", True), ("a", False), ("b", True)):
        body = {"name": "default", "disabled": disabled, "sortOrder": 7}
        assert client.post(f"{FEATURES}/{name}/environments/development/strategies", body).status == 200
        assert client.post(f"{FEATURES}/{name}/environments/production/strategies", body).status == 200
    names = ["b", "a", "new"]
    assert client.post(FEATURES, {"name": "new"}).status == 201
    assert client.post(f"{BULK}/on{query}", {"features": names}).status == 200
    for name in names:
        assert client.post(f"{FEATURES}/{name}/environments/production/on{query}").status == 200
    found = {
        place: [
            (each["type"], each["featureName"], without_new(each["preData"]), without_new(each["data"]))
            for each in client.get("/api/admin/events?limit=30").json()["events"]
            if each["environment"] == place
        ]
        for place in ("development", "production")
    }
    assert found["development"] == found["production"] and len(found["development"]) > 6


@pytest.mark.parametrize("path", [f"{STATE}/off", f"{BULK}/off"])
def test_switching_off_enables_no_strategy(client: AppClient, path: str) -> None:
    """Disabled strategies are enabled by switching on only."""
    made = client.post(f"{STATE}/strategies", {"name": "default", "disabled": True}).json()
    client.post(f"{STATE}/on")
    assert client.post(f"{path}?shouldActivateDisabledStrategies=true", {"features": ["a"]}).status == 200
    assert client.get(f"{STATE}/strategies/{made['id']}").json()["disabled"] is True


def without_new(side: dict[str, Any] | None) -> dict[str, Any]:
    """Return a side of an event without what is new for each strategy."""
    return {name: value for name, value in (side or {}).items() if name not in ("id", "position")}


@pytest.mark.parametrize("act", ["on", "off"])
def test_switching_many_takes_few_statements(client: AppClient, act: str) -> None:
    """A hundred times as many features need as many statements: twelve for each of 5,000 took 13 s under the writers' lock."""
    names = [f"many-{number}" for number in range(100)]
    for name in names:
        assert client.post(FEATURES, {"name": name}).status == 201
    if act == "off":
        assert client.post(f"{BULK}/on", {"features": [*names, "a"]}).status == 200
    sent: list[str] = []
    event.listen(client.server.store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    assert client.post(f"{BULK}/{act}", {"features": ["a"]}).status == 200
    few = len(sent)
    assert client.post(f"{BULK}/{act}", {"features": names}).status == 200
    assert len(sent) == 2 * few


def test_a_full_feature_is_refused_among_many(client: AppClient) -> None:
    """A feature with the most strategies, all disabled, gets no other one: nothing is switched."""
    for _ in range(MAX_STRATEGIES):
        assert client.post(f"{STATE}/strategies", {"name": "default", "disabled": True}).status == 200
    refused = client.post(f"{BULK}/on", {"features": ["b", "a", "nosuch"]})
    assert (refused.status, refused.json()["name"]) == (400, "ExceedsLimitError")
    assert client.get(STATE.replace("/a/", "/b/")).json()["enabled"] is False


def test_variants_need_a_permission(client: AppClient) -> None:
    """The permission counts in each environment of the body."""
    url = f"{FEATURES}/a/variants-batch"
    body = {"variants": [{"name": "v", "weight": 1}], "environments": ["development"]}
    denied = client.put(url, body, token=VIEWER_SECRET)
    assert denied.status == 403
    assert denied.json()["message"].endswith('permission in the "development" environment.')
    assert client.put(url, body, token=EDITOR_SECRET).status == 200
