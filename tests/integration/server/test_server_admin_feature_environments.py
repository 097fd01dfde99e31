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
DEFAULT = {"rollout": "100", "stickiness": "default", "groupId": "a"}


def test_on_and_off(client: AppClient) -> None:
    """A feature that is switched on for the first time gets a strategy that is on for everybody; later it keeps its strategies."""
    for _ in range(2):
        assert client.post(f"{STATE}/on").status == 200
    shown = client.get(STATE, token=VIEWER_SECRET).json()
    assert (shown["name"], shown["environment"], shown["enabled"]) == ("a", "development", True)
    assert [(each["name"], each["parameters"]) for each in shown["strategies"]] == [("flexibleRollout", DEFAULT)]
    assert client.post(f"{STATE}/off").body == b""
    assert client.get(STATE).json()["enabled"] is False
    assert client.get(STATE.replace("development", "production")).json()["enabled"] is False


def test_disabled_strategies(client: AppClient) -> None:
    """If no strategy is active, switching on adds one, or activates the existing ones."""
    client.post(f"{STATE}/on")
    url = f"{STATE}/strategies/{client.get(STATE).json()['strategies'][0]['id']}"
    client.put(url, {"name": "flexibleRollout", "disabled": True})
    client.post(f"{STATE}/on?shouldActivateDisabledStrategies=true")
    assert [each["disabled"] for each in client.get(STATE).json()["strategies"]] == [False]
    client.put(url, {"name": "flexibleRollout", "disabled": True})
    client.post(f"{STATE}/on")
    shown = client.get(STATE).json()
    assert (shown["enabled"], [each["disabled"] for each in shown["strategies"]]) == (True, [True, False])


def test_several_at_once(client: AppClient) -> None:
    """Either all features are switched, or none."""
    assert client.post(f"{BULK}/on", {"features": ["a", "b", "a"]}).status == 200
    assert [each["environments"][0]["enabled"] for each in client.get(FEATURES).json()["features"]] == [True, True]
    assert client.post(f"{BULK}/off", {"features": ["a", "elsewhere"]}).status == 404
    assert client.get(STATE).json()["enabled"] is True
    assert client.post(f"{BULK}/off", {"features": ["a"]}).status == 200
    assert client.get(STATE).json()["enabled"] is False
    assert client.post(f"{BULK}/on", {}).status == 400


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


def test_variants(client: AppClient) -> None:
    """Variants can be set in several environments together; in a single one only if the feature already has variants."""
    refused = client.put(f"{STATE}/variants", [{"name": "v", "weight": 1}])
    assert (refused.status, refused.json()["name"]) == (403, "InvalidOperationError")
    pushed = client.put(
        f"{FEATURES}/a/variants-batch",
        {"variants": [{"name": "z", "weight": 1}, {"name": "b", "weight": 1}], "environments": ["development"]},
    )
    assert [(each["name"], each["weight"]) for each in pushed.json()["variants"]] == [("z", 500), ("b", 500)]
    listed = client.get(f"{STATE}/variants").json()
    assert [each["name"] for each in listed["variants"]] == ["b", "z"]
    assert client.get(f"{FEATURES}/a").json()["variants"] == listed["variants"]
    patched = client.ask("PATCH", f"{STATE}/variants", [{"op": "remove", "path": "/0"}]).json()
    assert [(each["name"], each["weight"]) for each in patched["variants"]] == [("z", 1000)]
    elsewhere = STATE.replace("development", "production")
    assert client.put(f"{elsewhere}/variants", [{"name": "v", "weight": 1}]).status == 400
    free = [{"name": "v", "weight": 1, "weightType": "variable"}]
    assert client.put(f"{elsewhere}/variants", free).json()["variants"][0]["weight"] == 1000
    assert client.put(f"{STATE}/variants", []).json() == {"version": 1, "variants": []}


def test_variants_need_a_permission(client: AppClient) -> None:
    """The permission counts in each environment of the body."""
    url = f"{FEATURES}/a/variants-batch"
    body = {"variants": [{"name": "v", "weight": 1}], "environments": ["development"]}
    denied = client.put(url, body, token=VIEWER_SECRET)
    assert denied.status == 403
    assert denied.json()["message"].endswith('permission in the "development" environment.')
    assert client.put(url, body, token=EDITOR_SECRET).status == 200
