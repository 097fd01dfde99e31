"""Strategies on the admin API: when a feature is on in an environment (import validation 6.3, step 7)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from support.flagservers import VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

FEATURES = "/api/admin/projects/default/features"
URL = f"{FEATURES}/a/environments/development/strategies"
NOBODY = "00000000-0000-0000-0000-000000000000"
CONSTRAINT = {"contextName": "userId", "operator": "IN", "values": ["1"]}
VARIANT = {"name": "v", "weight": 1, "weightType": "variable", "stickiness": "default"}
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": "O"}],
    "features": [{"name": "a"}, {"name": "b"}],
    "segments": [{"name": "first"}, {"name": "second"}, {"name": "third", "project": "other"}],
    "contextFields": [{"name": "legal", "legalValues": [{"value": "x"}]}],
    "strategyTypes": [{"name": "mine"}],
}


def made(client: AppClient, url: str = URL, **wanted: Any) -> dict[str, Any]:
    """Add a strategy and return it."""
    answer = client.post(url, {"name": "flexibleRollout", **wanted})
    assert answer.status == 200, answer.body
    return dict(answer.json())


def test_adding(client: AppClient) -> None:
    """A new strategy comes last unless it has a sort order; missing parameters of a rollout are filled in."""
    first = made(client, constraints=[CONSTRAINT], variants=[VARIANT], segments=[2, 1, 2])
    assert first == {
        "id": first["id"],
        "name": "flexibleRollout",
        "constraints": [CONSTRAINT],
        "parameters": {"rollout": "100", "stickiness": "default", "groupId": "a"},
        "variants": [VARIANT | {"weight": 1000}],
        "segments": [2, 1],
        "title": None,
        "disabled": False,
        "sortOrder": 0,
    }
    assert made(client, name="mine", sortOrder=7, disabled=True, parameters={"x": 5})["parameters"] == {"x": "5"}
    assert made(client)["sortOrder"] == 8
    listed = client.get(URL, token=VIEWER_SECRET).json()
    assert [each["sortOrder"] for each in listed] == [0, 7, 8]
    assert listed[0] == first | {"milestoneId": None}
    assert client.get(f"{URL}/{first['id']}").json() == first
    shown = client.get(f"{FEATURES}/a/environments/development").json()
    assert shown["enabled"] is False
    assert shown["strategies"][0] == {name: first[name] for name in first if name != "segments"} | {"featureName": "a"}


REFUSED = (
    ({"name": "mine", "segments": [1.5]}, 404, 'No segment exists with ID "1.5"'),
    ({"name": "mine", "segments": ["1e400"]}, 404, 'No segment exists with ID "Infinity"'),
    ({"name": "mine", "segments": [1e300]}, 404, 'No segment exists with ID "1e+300"'),
    ({"name": "mine", "segments": [1, 3]}, 400, 'The segments third with id 3 does not belong to project "default"'),
    ({"name": "mine", "sortOrder": "1e400"}, 400, '"sortOrder" must be a safe number. You provided "Infinity".'),
)


def test_what_cannot_be_added(client: AppClient) -> None:
    """The error gives the reason, and nothing is stored."""
    for wanted, status, text in REFUSED:
        answer = client.post(URL, wanted)
        assert answer.status == status
        assert answer.json()["details"][0]["message"].startswith(text)
        assert client.get(URL).json() == []


def test_where_nothing_can_be_added(client: AppClient) -> None:
    """A missing feature or environment and another project are refused."""
    body = {"name": "flexibleRollout"}
    assert client.post(f"{FEATURES}/nosuch/environments/development/strategies", body).status == 404
    assert client.post(f"{FEATURES}/a/environments/nosuch/strategies", body).status == 400
    assert client.post(URL.replace("default", "other"), body).status == 404
    assert client.get(f"{FEATURES}/a/environments/nosuch/strategies").status == 404


def test_a_feature_has_30_strategies_at_most(client: AppClient) -> None:
    """The limit counts in each environment."""
    for _ in range(30):
        made(client)
    answer = client.post(URL, {"name": "flexibleRollout"})
    assert (answer.status, answer.json()["name"]) == (400, "ExceedsLimitError")
    made(client, URL.replace("development", "production"))


def test_changing(client: AppClient) -> None:
    """Constraints, parameters and variants are replaced; title, name, state, order and segments stay if they are absent."""
    one = made(client, title="t", segments=[1], constraints=[CONSTRAINT], variants=[VARIANT], sortOrder=4)
    url = f"{URL}/{one['id']}"
    bare = client.put(url, {"title": None, "disabled": None, "sortOrder": 9}).json()
    assert bare == one | {"constraints": [], "variants": [], "parameters": {}}
    named = client.put(url, {"name": "flexibleRollout", "segments": [], "title": "x"}).json()
    assert (named["segments"], named["title"]) == ([], "x")
    assert named["parameters"] == one["parameters"]
    assert client.put(url, {"name": "mine", "parameters": {"rollout": "5"}}).json()["name"] == "mine"
    for wanted, status in (({"name": "nosuch"}, 400), ({"segments": [99]}, 404), ({"disabled": "x"}, 400)):
        assert client.put(url, wanted).status == status


def test_patching(client: AppClient) -> None:
    """A JSON Patch changes a strategy. The result must have a strategy's shape; its id and order do not change."""
    one = made(client, segments=[1])
    url = f"{URL}/{one['id']}"
    changed = client.ask("PATCH", url, [{"op": "replace", "path": "/parameters/rollout", "value": "25"}]).json()
    assert changed == one | {"parameters": one["parameters"] | {"rollout": "25"}}
    kept = client.ask("PATCH", url, [{"op": "replace", "path": f"/{name}", "value": "7"} for name in ("id", "sortOrder")])
    assert kept.json() == changed
    wrong = client.ask("PATCH", url, [{"op": "add", "path": "/zz", "value": 1}])
    assert wrong.status == 400
    assert "id" not in wrong.json()
    assert wrong.json()["details"][0]["path"] == "zz"
    assert client.ask("PATCH", f"{URL}/{NOBODY}", []).status == 404


def test_a_strategy_has_its_place(client: AppClient) -> None:
    """A strategy is changed and removed only under its own project, feature and environment."""
    one = made(client)
    for url, status in (
        (URL.replace("default", "other"), 403),
        (URL.replace("/a/", "/b/"), 403),
        (URL.replace("development", "production"), 404),
    ):
        assert client.put(f"{url}/{one['id']}", {}).status == status
        assert client.delete(f"{url}/{one['id']}").status == status
    assert client.put(f"{URL}/{NOBODY}", {}).json()["message"] == f"Could not find strategy with id={NOBODY}"
    assert client.get(f"{URL}/{NOBODY}").json()["message"] == f"Could not find strategy with id: {NOBODY}"
    assert client.get(f"{URL}/{one['id']}").json() == one


@pytest.mark.parametrize("how", ["removed", "disabled"])
def test_without_an_active_strategy_it_is_off(client: AppClient, how: str) -> None:
    """The feature is switched off when its last active strategy goes, not before."""
    ids = [made(client)["id"] for _ in range(2)]
    state = f"{FEATURES}/a/environments/development"
    client.post(f"{state}/on")
    for number, each in enumerate(ids):
        url = f"{URL}/{each}"
        assert (client.delete(url) if how == "removed" else client.put(url, {"disabled": True})).status == 200
        assert client.get(state).json()["enabled"] is (number == 0)


def test_sorting(client: AppClient) -> None:
    """The strategies get the new order; those of other features do not change."""
    ids = [made(client)["id"] for _ in range(3)]
    other = made(client, URL.replace("/a/", "/b/"))
    orders = [{"id": each, "sortOrder": -number} for number, each in enumerate([*ids, NOBODY])]
    assert client.post(f"{URL}/set-sort-order", [*orders, {"id": other["id"], "sortOrder": 5}]).status == 200
    assert [each["id"] for each in client.get(URL).json()] == ids[::-1]
    assert client.get(f"{URL}/{other['id']}").json()["sortOrder"] == 0
    assert client.post(f"{URL}/set-sort-order", {}).status == 400
    assert client.post(f"{URL}/set-sort-order", [{"id": ids[0], "sortOrder": "1e400"}]).status == 400
    assert client.post(f"{URL.replace('development', 'nosuch')}/set-sort-order", []).status == 404
    assert client.post(f"{URL.replace('default', 'other')}/set-sort-order", []).status == 404


def test_sorting_takes_few_statements(client: AppClient) -> None:
    """Strategies that the feature does not have cost nothing, however many there are."""
    sent: list[str] = []
    event.listen(client.server.store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    orders = [{"id": f"{NOBODY}{number}", "sortOrder": number} for number in range(5000)]
    assert client.post(f"{URL}/set-sort-order", orders).status == 200
    assert len(sent) < 50
