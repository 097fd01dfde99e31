"""`/api/admin/events/:id/undo` and `…/actions/:groupId/undo` at their limits. test_server_undo_kinds.py tries every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import update

from flagsvc.server.store.resources.strategies import MAX_STRATEGIES
from flagsvc.server.store.schema import events
from support.flagservers import BACKEND_SECRET, VIEWER_SECRET, AppClient
from support.page_forms import Visitor

pytestmark = pytest.mark.one_database

EVENTS = "/api/admin/events"
FEATURES = "/api/admin/projects/default/features"
FLAG = f"{FEATURES}/a"
HERE = f"{FLAG}/environments/development"
PRODUCTION = f"{FLAG}/environments/production"
LISTED = f"{HERE}/strategies"
PERCENT = {"name": "flexibleRollout", "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "a"}}
VARIANTS = [{"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "features": [{"name": "a"}, {"name": "goods", "project": "shop"}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "userId", "operator": "IN", "values": ["7"]}]}],
}


def prepare(client: AppClient) -> None:
    """Make a flag that has two strategies."""
    for title in ("one", "two"):
        assert client.post(LISTED, PERCENT | {"title": title, "segments": [1]}).status == 200
    assert client.post(f"{HERE}/on", None).status == 200
    assert client.post(f"{PRODUCTION}/strategies", PERCENT).status == 200


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


def add_first(client: AppClient, disabled: bool) -> None:
    """Give the flag its only strategy in development, where it is off."""
    for _ in range(2):
        remove(client)
    assert client.post(LISTED, PERCENT | {"disabled": disabled}).status == 200


def enable(client: AppClient) -> None:
    """Give the flag its only active strategy in development, by a change of a disabled one."""
    add_first(client, disabled=True)
    assert client.ask("PUT", f"{LISTED}/{strategy_ids(client)[0]}", PERCENT | {"disabled": False}).status == 200


FIRST: Mapping[str, Callable[[AppClient], None]] = {
    "feature-strategy-add": lambda client: add_first(client, disabled=False),
    "feature-strategy-update": enable,
}
"""Kind of event → how it gives a flag its only active strategy in development, where it is off."""


@pytest.mark.parametrize("kind", FIRST)
def test_an_undo_opens_no_flag_to_everyone(client: AppClient, kind: str) -> None:
    """A flag that is on keeps its last active strategy: the question and the 409 say to switch it off; then it is undone."""
    FIRST[kind](client)
    event = last_event(client, kind)
    assert client.post(f"{HERE}/on", None).status == 200
    before = state(client)
    for path in (event["id"], f"actions/{event['groupId']}"):
        refused = client.post(f"{EVENTS}/{path}/undo", None)
        assert refused.status == 409 and "leave a on in development without an active strategy" in refused.text
        assert "switch the flag off first" in refused.text and state(client) == before
        assert Visitor(client).data(f"/history/{path}/undo")["obstacle"] in refused.text
    assert client.post(f"{HERE}/off", None).status == 200
    assert Visitor(client).data(f"/history/{event['id']}/undo")["obstacle"] == ""
    assert client.post(f"{EVENTS}/{event['id']}/undo", None).status == 200
    assert not client.get(HERE).json()["enabled"]


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


NEW_TAG = {"type": "simple", "value": "new"}
REGROUPED: Mapping[str, tuple[int, str | None]] = {"one project": (200, "x"), "several": (403, "x"), "old": (403, None)}
"""Case → the status of the undo for a member of the default project, and the action that the events of the tag get."""


@pytest.mark.parametrize("name", REGROUPED)
def test_where_the_undo_of_a_tag_needs_its_permission(client: AppClient, name: str) -> None:
    """A member of the only project whose flags got the tag may undo it; else the permission is for the whole server."""
    status, action = REGROUPED[name]
    member = {"roles": [5], "groups": [], "users": [3]}
    assert client.post("/api/admin/projects/default/access", member).status == 200
    for flag in ("a", "goods") if name == "several" else ("a",):
        assert client.post(f"/api/admin/features/{flag}/tags", NEW_TAG).status == 201
        assert client.ask("DELETE", f"/api/admin/features/{flag}/tags/simple/new").status == 200
    with client.server.store.writing(None) as tx:
        of_tag = events.c.type.in_(("tag-created", "feature-tagged"))
        tx.db.execute(update(events).where(of_tag).values(action=action))
    event = last_event(client, "tag-created")
    assert client.ask("POST", f"{EVENTS}/{event['id']}/undo", None, token=VIEWER_SECRET).status == status


def data_of(names: list[str]) -> dict[str, Any]:
    """Return an import of flags that are on, each with two strategies and variants."""
    rules = [{"featureName": name, "segments": [1], **PERCENT} for name in names for _ in range(2)]
    states = [{"name": name, "featureName": name, "enabled": True, "variants": VARIANTS} for name in names]
    features = [{"name": name, "description": "new"} for name in names]
    lists = {"features": features, "featureStrategies": rules, "featureEnvironments": states, "tagTypes": []}
    shared = {"segments": [{"id": 1, "name": "beta"}], "contextFields": [{"name": f"field-{name}"} for name in names]}
    links = [{"feature": name, "links": [{"url": "https://example.com/a"}]} for name in names]
    tags = [{"featureName": name, "tagType": "simple", "tagValue": "known"} for name in names]
    own = {"links": links, "featureTags": tags}
    return {"project": "default", "environment": "development", "data": lists | shared | own}


def load(client: AppClient, names: list[str]) -> None:
    """Import flags."""
    assert client.post("/api/admin/features-batch/import", data_of(names)).status == 200


def load_over(client: AppClient, names: list[str]) -> None:
    """Import flags over others."""
    for name in names:
        assert client.post("/api/admin/projects/default/features", {"name": name}).status == 201
        assert client.post(f"{HERE.replace('/a/', f'/{name}/')}/strategies", PERCENT).status == 200
    load(client, names)


def mark(client: AppClient, names: list[str]) -> None:
    """Mark flags as stale."""
    load(client, names)
    assert client.post("/api/admin/projects/default/stale", {"features": names, "stale": True}).status == 202


def archive(client: AppClient, names: list[str]) -> None:
    """Archive flags."""
    load(client, names)
    assert client.post("/api/admin/projects/default/archive", {"features": names}).status == 202


def remove_flags(client: AppClient, names: list[str]) -> None:
    """Delete flags."""
    archive(client, names)
    assert client.post("/api/admin/projects/default/delete", {"features": names}).status == 200


def switch(client: AppClient, names: list[str]) -> None:
    """Switch flags on, which adds a strategy to each."""
    for name in names:
        assert client.post("/api/admin/projects/default/features", {"name": name}).status == 201
    path = "/api/admin/projects/default/bulk_features/environments/development/on"
    assert client.post(path, {"features": names}).status == 200


@pytest.mark.parametrize("act", [load, load_over, mark, archive, remove_flags, switch])
def test_an_undo_of_many_changes_takes_few_statements(client: AppClient, act: Callable[[AppClient, list[str]], None]) -> None:
    """The undo of changes of ten flags, and the undo of that undo, take as many statements as of two: 15 for each took 20 s."""
    sent: list[str] = []
    sqlalchemy.event.listen(client.server.store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    counts = []
    assert client.post("/api/admin/tags", {"type": "simple", "value": "known"}).status == 201
    for names in (["b", "c"], [f"many-{number}" for number in range(10)]):
        act(client, names)
        for _ in range(2):
            path = f"{EVENTS}/actions/{last_event(client)['groupId']}/undo"
            before = len(sent)
            assert client.post(path, None).status == 200
            counts.append(len(sent) - before)
    assert counts[2:] == counts[:2]


def give_parts(client: AppClient) -> None:
    """Give a new flag a link, a tag and a parent, and take them away again."""
    client.post(FEATURES, {"name": "parent"})
    client.post(FEATURES, {"name": "gone"})
    client.post(f"{FEATURES}/gone/link", {"url": "https://example.com/"})
    client.post("/api/admin/features/gone/tags", {"type": "simple", "value": "old"})
    client.post(f"{FEATURES}/gone/dependencies", {"feature": "parent"})
    [link] = client.get(f"{FEATURES}/gone").json()["links"]
    client.delete(f"{FEATURES}/gone/link/{link['id']}")
    client.delete("/api/admin/features/gone/tags/simple/old")
    client.delete(f"{FEATURES}/gone/dependencies")


def test_parts_of_a_deleted_flag_are_not_given_back(client: AppClient) -> None:
    """What a flag had cannot come back after the end of the flag: the answer names the event that ended the flag."""
    for kind in ("feature-link-removed", "feature-untagged", "feature-dependencies-removed"):
        give_parts(client)
        number = last_event(client, kind)["id"]
        assert client.delete(f"{FEATURES}/gone").status == 202
        assert client.delete("/api/admin/archive/gone").status == 200
        refused = client.post(f"/api/admin/events/{number}/undo")
        assert refused.status == 409 and "delete" in refused.text
