"""An undo opens no flag to everyone that was not open: without its strategy, of another flag, or of an open flag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from support.flagservers import BACKEND_SECRET, AppClient, app_client
from support.page_forms import Visitor

pytestmark = pytest.mark.one_database

EVENTS = "/api/admin/events"
P = "/api/admin/projects/default"
FLAG = f"{P}/features/a"
HERE = f"{FLAG}/environments/staging"
LISTED = f"{HERE}/strategies"
PERCENT = {"name": "flexibleRollout", "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "a"}}
GIVEN: dict[str, Any] = {"environments": [{"name": "staging", "type": "test"}], "features": [{"name": "a"}]}
OFF = "feature-environment-disabled"


def prepare(client: AppClient) -> None:
    """Make a flag that is on in staging for 25 %."""
    do(client, "POST", f"{P}/environments", {"environment": "staging"})
    do(client, "POST", LISTED, PERCENT)
    do(client, "POST", f"{HERE}/on")


def do(client: AppClient, method: str, path: str, body: object = None) -> None:
    """Do a step that succeeds."""
    answer = client.ask(method, path, body)
    assert answer.status < 300, (method, path, answer.text)


def newest(client: AppClient, kind: str) -> dict[str, Any]:
    """Return the newest event of a kind."""
    return dict(client.get(f"/api/admin/search/events?limit=1&type=IS:{kind}").json()["events"][0])


def strategy(client: AppClient) -> str:
    """Return the path of the only strategy."""
    [found] = client.get(LISTED).json()
    return f"{LISTED}/{found['id']}"


def state(client: AppClient) -> Any:
    """Return whether the flag is on, and its strategies."""
    return client.get(HERE).json()


def remove_later(client: AppClient) -> None:
    """Switch the flag off, and then remove its strategy."""
    do(client, "POST", f"{HERE}/off")
    do(client, "DELETE", strategy(client))


def disable_later(client: AppClient) -> None:
    """Switch the flag off, and then disable its strategy."""
    do(client, "POST", f"{HERE}/off")
    do(client, "PUT", strategy(client), PERCENT | {"disabled": True})


def remove_together(client: AppClient) -> None:
    """Remove the last strategy of the flag, which switches it off."""
    do(client, "DELETE", strategy(client))


def delete_the_flag(client: AppClient) -> None:
    """Switch the flag off, delete it, and make another one of the same name."""
    do(client, "POST", f"{HERE}/off")
    do(client, "DELETE", FLAG)
    do(client, "DELETE", "/api/admin/archive/a")
    do(client, "POST", f"{P}/features", {"name": "a"})


def delete_the_environment(client: AppClient) -> None:
    """Switch the flag off, delete the environment, and make another one of the same name."""
    do(client, "POST", f"{HERE}/off")
    do(client, "DELETE", f"{P}/environments/staging")
    do(client, "DELETE", "/api/admin/environments/staging")
    do(client, "POST", "/api/admin/environments", {"name": "staging", "type": "test"})
    do(client, "POST", f"{P}/environments", {"environment": "staging"})


GONE: Mapping[str, tuple[Callable[[AppClient], None], str]] = {
    "removed": (remove_later, "removed flexibleRollout of a in staging"),
    "disabled": (disable_later, "changed flexibleRollout of a in staging"),
    "removed together": (remove_together, "removed flexibleRollout of a in staging"),
    "another flag": (delete_the_flag, "deleted a"),
    "another environment": (delete_the_environment, "deleted the environment staging"),
}
"""Case → how a switch-off is followed by the loss of the strategy, and the words of the event that took it."""


@pytest.mark.parametrize("name", GONE)
def test_a_switch_off_whose_strategy_is_gone_is_not_undone(client: AppClient, name: str) -> None:
    """The flag was on for 25 %, and would be on for everyone. The question and the 409 name the event that took the strategy."""
    GONE[name][0](client)
    event, before = newest(client, OFF), state(client)
    refused = client.post(f"{EVENTS}/{event['id']}/undo", None)
    assert refused.status == 409 and "would switch a on in staging without an active strategy" in refused.text
    assert f"boss {GONE[name][1]}" in refused.text and state(client) == before
    asked = Visitor(client).data(f"/history/{event['id']}/undo")
    assert asked["obstacle"] in refused.text and f"(event {asked['later']})" in asked["obstacle"] and not asked["opened"]


def test_the_strategy_first_and_then_the_switch(client: AppClient) -> None:
    """The undo of the event that the refusal names is done, and then that of the switch: all is as before."""
    before = state(client)
    remove_later(client)
    event = newest(client, OFF)
    later = Visitor(client).data(f"/history/{event['id']}/undo")["later"]
    for number in (later, event["id"]):
        do(client, "POST", f"{EVENTS}/{number}/undo")
    assert state(client) == before


def test_a_removal_that_switched_off_is_undone_whole(client: AppClient) -> None:
    """Together, the switch and the strategy come back."""
    before = state(client)
    remove_together(client)
    do(client, "POST", f"{EVENTS}/actions/{newest(client, OFF)['groupId']}/undo")
    assert state(client) == before


def test_a_flag_with_another_strategy_is_switched_on(client: AppClient) -> None:
    """What says now who gets the flag holds; only a flag without any strategy is refused."""
    remove_later(client)
    do(client, "POST", LISTED, PERCENT | {"title": "another"})
    do(client, "POST", f"{EVENTS}/{newest(client, OFF)['id']}/undo")
    assert state(client)["enabled"] and [each["title"] for each in state(client)["strategies"]] == ["another"]


def test_what_comes_back_from_the_archive(client: AppClient) -> None:
    """An archived flag whose strategy is gone is not revived where it was on."""
    do(client, "DELETE", FLAG)
    archived = newest(client, "feature-archived")
    do(client, "POST", "/api/admin/archive/revive/a")
    do(client, "DELETE", strategy(client))
    do(client, "POST", f"{EVENTS}/{newest(client, 'feature-revived')['id']}/undo")
    refused = client.post(f"{EVENTS}/{archived['id']}/undo", None)
    assert refused.status == 409 and "would switch a on in staging without an active strategy" in refused.text


def test_a_flag_that_was_open_is_open_again(database_url: str) -> None:
    """As a seed can leave it. The question says so in words before the button, and clients get the same as before."""
    given = {"features": [{"name": "a", "enabled": ["development"]}]}
    with app_client(database_url, given=given) as client:
        place = f"{FLAG}/environments/development"
        assert client.get(f"{place}/strategies").json() == []
        before = client.get("/api/client/features", token=BACKEND_SECRET).json()["features"]
        assert [each["enabled"] for each in before] == [True]
        do(client, "POST", f"{place}/off")
        number, visitor = newest(client, OFF)["id"], Visitor(client)
        assert visitor.data(f"/history/{number}/undo")["opened"] == [{"feature": "a", "environment": "development"}]
        assert "<bdi>a</bdi> is then on in <bdi>development</bdi> for everyone" in visitor.see(f"/history/{number}/undo").text
        assert visitor.send(f"/history/{number}/undo").status == 303
        assert client.get("/api/client/features", token=BACKEND_SECRET).json()["features"] == before
