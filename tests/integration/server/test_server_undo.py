"""`/api/admin/events/:id/undo` and `…/actions/:groupId/undo` at their limits. test_server_undo_kinds.py tries every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.strategies import MAX_STRATEGIES
from support.flagservers import BACKEND_SECRET, AppClient, app_client

EVENTS = "/api/admin/events"
FLAG = "/api/admin/projects/default/features/a"
HERE = f"{FLAG}/environments/development"
PRODUCTION = f"{FLAG}/environments/production"
LISTED = f"{HERE}/strategies"
PERCENT = {"name": "flexibleRollout", "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "a"}}
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "userId", "operator": "IN", "values": ["7"]}]}],
}


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a server with a flag that has two strategies, on each kind of database."""
    with app_client(database_url, given=GIVEN) as client:
        for title in ("one", "two"):
            assert client.post(LISTED, PERCENT | {"title": title, "segments": [1]}).status == 200
        assert client.post(f"{HERE}/on", None).status == 200
        assert client.post(f"{PRODUCTION}/strategies", PERCENT).status == 200
        yield client


def strategy_ids(client: AppClient) -> list[str]:
    """Return the ids of the strategies in their order."""
    return [each["id"] for each in client.get(LISTED).json()]


def last_event(client: AppClient, kind: str = "") -> dict[str, Any]:
    """Return the newest event, or the newest of a kind."""
    found: list[dict[str, Any]] = client.get(f"{EVENTS}?limit=20").json()["events"]
    return next(each for each in sorted(found, key=lambda each: -each["id"]) if kind in ("", each["type"]))


def state(client: AppClient) -> tuple[bytes, Any]:
    """Return the document for clients, byte for byte, and the strategies as the admin API shows them."""
    document = client.get("/api/client/features", token=BACKEND_SECRET)
    assert document.status == 200
    return document.body.partition(b'"meta"')[0], client.get(FLAG).json()["environments"]


def add(client: AppClient) -> None:
    """Add a strategy."""
    assert client.post(LISTED, PERCENT).status == 200


def remove(client: AppClient) -> None:
    """Remove the first strategy."""
    assert client.ask("DELETE", f"{LISTED}/{strategy_ids(client)[0]}").status == 200


def test_undo_of_an_action(database_url: str) -> None:
    """The first switch of a flag adds a strategy, too: both are undone together."""
    with app_client(database_url, given=GIVEN) as client:
        before = client.get("/api/client/features", token=BACKEND_SECRET).json()["features"]
        assert client.post(f"{HERE}/on", None).status == 200
        action = last_event(client)["groupId"]
        assert client.post(f"{EVENTS}/actions/{action}/undo", None).status == 200
        assert client.get("/api/client/features", token=BACKEND_SECRET).json()["features"] == before
        assert client.get(LISTED).json() == []


def test_a_flag_that_was_on_stays_on(client: AppClient) -> None:
    """A flag may be on without a strategy; the undo of the first one added leaves it on."""
    for _ in range(2):
        remove(client)
    with client.server.store.writing(None) as tx:
        strategies.set_state(tx, strategies.StrategyPlace("default", "a", "development"), enabled=True)
    before = state(client)
    add(client)
    event = last_event(client, "feature-strategy-add")
    assert client.post(f"{EVENTS}/{event['id']}/undo", None).status == 200
    assert state(client) == before


def test_half_of_an_action_is_not_undone(client: AppClient) -> None:
    """If one event of an action cannot be undone, none is."""
    [made] = client.get(f"{PRODUCTION}/strategies").json()
    assert client.ask("DELETE", f"{PRODUCTION}/strategies/{made['id']}").status == 200
    client.post(f"{PRODUCTION}/on", None)
    action = last_event(client)["groupId"]
    [added] = client.get(f"{PRODUCTION}/strategies").json()
    assert client.ask("PUT", f"{PRODUCTION}/strategies/{added['id']}", PERCENT | {"title": "later"}).status == 200
    now = client.get(FLAG).json()
    assert client.post(f"{EVENTS}/actions/{action}/undo", None).status == 409
    assert client.get(FLAG).json()["environments"] == now["environments"]


def test_a_missing_segment_is_told(client: AppClient) -> None:
    """A strategy whose segment is deleted meanwhile cannot come back; the message names the segment."""
    for _ in range(2):
        remove(client)
    [left] = client.get(f"{PRODUCTION}/strategies").json()
    assert left["segments"] == []
    event = last_event(client, "feature-strategy-remove")
    assert client.ask("DELETE", "/api/admin/segments/1").status == 204
    answer = client.post(f"{EVENTS}/{event['id']}/undo", None)
    assert answer.status == 409 and "No segment exists" in answer.text


def test_an_unknown_event_is_told(client: AppClient) -> None:
    """An event or an action that never was, or that is deleted by its age, is 404."""
    for path in ("999999", "actions/nosuch"):
        assert client.post(f"{EVENTS}/{path}/undo", None).status == 404


def test_the_limit_of_strategies_holds(client: AppClient) -> None:
    """A removed strategy does not come back where there are as many as may be."""
    remove(client)
    event = last_event(client, "feature-strategy-remove")
    for _ in range(MAX_STRATEGIES - 1):
        add(client)
    answer = client.post(f"{EVENTS}/{event['id']}/undo", None)
    assert answer.status == 409 and str(MAX_STRATEGIES) in answer.text
    assert len(strategy_ids(client)) == MAX_STRATEGIES
