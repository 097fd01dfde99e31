"""Environments on the admin API (the real server's /api/admin/environments and …/projects/…/environments)."""

from __future__ import annotations

from typing import Any

import pytest

from support.flagservers import EDITOR_SECRET, AppClient

pytestmark = pytest.mark.one_database

URL = "/api/admin/environments"
PROJECT = "/api/admin/projects/default"
GIVEN: dict[str, Any] = {
    "environments": [{"name": "staging", "type": "test", "sortOrder": 9}],
    "projects": [{"id": "other", "name": "O", "environments": ["staging"]}],
    "features": [
        {"name": "a", "enabled": ["development"]},
        {"name": "old", "archived": True},
        {"name": "b", "project": "other", "enabled": ["staging"]},
    ],
    "strategies": [{"feature": "a", "environment": "development", "name": "default"}],
    "tokens": [{"type": "backend", "secret": "other:staging.x", "environment": "staging", "projects": ["other"]}],
}
COUNTS = ("projectCount", "apiTokenCount", "enabledToggleCount")


def test_the_list(client: AppClient) -> None:
    """The list is in sort order, and counts each environment's projects, tokens and enabled features."""
    listed = client.get(URL).json()
    assert listed["version"] == 1
    found = {each["name"]: tuple(each[name] for name in COUNTS) for each in listed["environments"]}
    assert found == {"development": (1, 2, 1), "production": (1, 0, 0), "staging": (1, 1, 1)}
    assert list(found) == ["development", "production", "staging"]
    one = client.get(f"{URL}/staging").json()
    assert one == {
        "name": "staging",
        "type": "test",
        "sortOrder": 9,
        "enabled": True,
        "protected": False,
        "requiredApprovals": None,
    }
    assert client.get(f"{URL}/nosuch").json()["message"] == "Could not find environment with name: nosuch"


def test_what_they_are_to_a_project(client: AppClient) -> None:
    """The answer says which environments the project has, and what belongs to the project in each."""
    listed = client.get(f"{URL}/project/other").json()["environments"]
    names = ("projectApiTokenCount", "projectEnabledToggleCount", "visible")
    found = {each["name"]: tuple(each[name] for name in names) for each in listed}
    assert found == {"development": (2, 0, False), "production": (0, 0, False), "staging": (1, 1, True)}
    assert not any(each["visible"] for each in client.get(f"{URL}/project/nosuch").json()["environments"])


def test_switching_and_sorting(client: AppClient) -> None:
    """Only an administrator may switch and sort environments."""
    assert client.post(f"{URL}/nosuch/on").status == 404
    assert client.put(f"{URL}/sort-order", {"staging": 1, "nosuch": 5}).status == 200
    assert client.get(URL).json()["environments"][0]["name"] == "staging"
    assert client.put(f"{URL}/sort-order", {"staging": "x"}).status == 400
    assert client.post(f"{URL}/staging/off", token=EDITOR_SECRET).status == 403
    assert client.put(f"{URL}/sort-order", {}, token=EDITOR_SECRET).status == 403


@pytest.mark.parametrize("order", [2**31, -(2**31) - 1, 10**400])
def test_orders_beyond_a_column(client: AppClient, order: int) -> None:
    """A sort order beyond the column's range is refused; the last ones within it are accepted."""
    assert client.put(f"{URL}/sort-order", {"staging": order}).status == 400
    assert client.put(f"{URL}/sort-order", {"staging": 2**31 - 1, "production": -(2**31)}).status == 200


def test_giving_and_taking(client: AppClient) -> None:
    """In an added environment the project's features are off; their strategies survive its removal."""
    url = f"{PROJECT}/environments"
    assert client.post(url, {"environment": "staging"}, token=EDITOR_SECRET).status == 200
    shown = client.get(f"{PROJECT}/features/a").json()["environments"]
    assert [(each["name"], each["enabled"]) for each in shown][-1] == ("staging", False)
    for name in ("development", "development", "nosuch"):
        assert client.delete(f"{url}/{name}").status == 200
    assert client.get(f"{PROJECT}/features/a/environments/development/strategies").status == 404
    assert client.post(url, {"environment": "development"}).status == 200
    assert len(client.get(f"{PROJECT}/features/a/environments/development/strategies").json()) == 1
    assert client.get(f"{PROJECT}/features/a/environments/development").json()["enabled"] is False
