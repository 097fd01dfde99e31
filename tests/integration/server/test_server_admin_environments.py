"""Environments on the admin API (the real server's /api/admin/environments and …/projects/…/environments)."""

from __future__ import annotations

from typing import Any

import pytest

from support.flagservers import AppClient

pytestmark = pytest.mark.one_database

URL = "/api/admin/environments"
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


@pytest.mark.parametrize("order", [2**31, -(2**31) - 1, 10**400])
def test_orders_beyond_a_column(client: AppClient, order: int) -> None:
    """A sort order beyond the column's range is refused; the last ones within it are accepted."""
    assert client.put(f"{URL}/sort-order", {"staging": order}).status == 400
    assert client.put(f"{URL}/sort-order", {"staging": 2**31 - 1, "production": -(2**31)}).status == 200
