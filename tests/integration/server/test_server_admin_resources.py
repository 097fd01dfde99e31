"""Segments, context fields, strategy types and tags on the wire: statuses, headers and permissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.server.api.admin import context_fields, segments, strategy_types, tag_types, tags
from support.flagservers import EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient, app_client
from support.server_pair import GIVEN, MEMBER_SECRET, OWNER_SECRET, STRATEGIES, OurServer

pytestmark = pytest.mark.one_database

ADMIN = "/api/admin"
SEGMENT = {"name": "beta", "constraints": []}
TAG = {"type": "simple", "value": "red"}
CHANGES = {"addedTags": [TAG], "removedTags": []}
OF_STRATEGY = {"projectId": "default", "environmentId": "development", "strategyId": STRATEGIES["used"], "segmentIds": [1]}
STEPS: tuple[Any, ...] = (
    ("POST", "/segments", SEGMENT, 201, "segments/1"),
    ("GET", "/segments", None, 200, None),
    ("GET", "/segments/1", None, 200, None),
    ("PUT", "/segments/1", SEGMENT, 204, None),
    ("POST", "/segments/validate", {"name": "free"}, 204, None),
    ("POST", "/segments/strategies", OF_STRATEGY, 201, f"strategies/{STRATEGIES['used']}"),
    ("GET", "/segments/1/strategies", None, 200, None),
    ("GET", f"/segments/strategies/{STRATEGIES['used']}", None, 200, None),
    ("DELETE", "/segments/1", None, 409, None),
    ("POST", "/segments/strategies", OF_STRATEGY | {"segmentIds": []}, 201, f"strategies/{STRATEGIES['used']}"),
    ("DELETE", "/segments/1", None, 204, None),
    ("POST", "/context", {"name": "tier"}, 201, "context/tier"),
    ("GET", "/context", None, 200, None),
    ("GET", "/context/tier", None, 200, None),
    ("PUT", "/context/tier", {"description": "d"}, 200, None),
    ("POST", "/context/validate", {"name": "free"}, 200, None),
    ("POST", "/context/tier/legal-values", {"value": "gold"}, 200, None),
    ("DELETE", "/context/tier/legal-values/gold", None, 200, None),
    ("GET", "/context/tier/strategies", None, 200, None),
    ("DELETE", "/context/tier", None, 200, None),
    ("DELETE", "/context/plan", None, 409, None),
    ("POST", "/strategies", {"name": "mine", "parameters": []}, 201, "strategies/mine"),
    ("GET", "/strategies", None, 200, None),
    ("GET", "/strategies/mine", None, 200, None),
    ("PUT", "/strategies/mine", {"parameters": []}, 200, None),
    ("POST", "/strategies/mine/deprecate", None, 200, None),
    ("POST", "/strategies/mine/reactivate", None, 200, None),
    ("DELETE", "/strategies/mine", None, 200, None),
    ("DELETE", "/strategies/default", None, 403, None),
    ("POST", "/tag-types", {"name": "squad"}, 201, "tag-types/squad"),
    ("GET", "/tag-types", None, 200, None),
    ("GET", "/tag-types/squad", None, 200, None),
    ("POST", "/tag-types/validate", {"name": "free"}, 200, None),
    ("PUT", "/tag-types/squad", {"icon": "i"}, 200, None),
    ("DELETE", "/tag-types/squad", None, 200, None),
    ("POST", "/tags", {"type": "simple", "value": "a/b ü"}, 201, "tags/simple/a/b%20%C3%BC"),
    ("GET", "/tags", None, 200, None),
    ("GET", "/tags/simple", None, 200, None),
    ("GET", "/tags/simple/a%2Fb%20%C3%BC", None, 200, None),
    ("DELETE", "/tags/simple/a%2Fb%20%C3%BC", None, 200, None),
    ("POST", "/features/web/tags", TAG, 201, "web/tags"),
    ("GET", "/features/web/tags", None, 200, None),
    ("PUT", "/features/web/tags", CHANGES, 200, None),
    ("DELETE", "/features/web/tags/simple/red", None, 200, None),
    ("PUT", "/projects/default/tags", {"features": ["web"], "tags": CHANGES}, 200, None),
)
"""Method, path, body, status, and the `Location` of what was made."""


@pytest.fixture
def client(sqlite_url: str) -> Iterator[AppClient]:
    """Give a server with some features and what they use."""
    with app_client(sqlite_url, given=GIVEN) as client:
        OurServer(client)
        yield client


def test_every_route_does_its_work(database_url: str) -> None:
    """The calls have their statuses. New objects have a `Location`. The calls use every route of these modules."""
    routes = [route for module in (segments, context_fields, strategy_types, tag_types, tags) for route in module.ROUTES]
    with app_client(database_url, given=GIVEN) as client:
        OurServer(client)
        for method, path, body, status, place in STEPS:
            answer = client.ask(method, ADMIN + path, body)
            assert (answer.status, answer.headers.get("location")) == (status, place), (method, path, answer.body)
        asked = {(each.route, each.method) for each in client.server.counts.every}
    assert {(route.path, route.method) for route in routes} == asked


def test_numbers_of_no_segment(client: AppClient) -> None:
    """An id of any size that no segment has is a 404."""
    for number in ("99", "-1", "99999999999", "1e300", "9223372036854775808"):
        assert client.get(f"{ADMIN}/segments/{number}").status == 404
        assert client.put(f"{ADMIN}/segments/{number}", SEGMENT).status == 404
        assert client.delete(f"{ADMIN}/segments/{number}").status == 404
        assert client.get(f"{ADMIN}/segments/{number}/strategies").status == 404
        assert f'ID \\"{number}\\"' in client.get(f"{ADMIN}/segments/{number}").body.decode()


def test_what_is_no_number(client: AppClient) -> None:
    """The error names the place in the path; a caller who may not change segments gets only the refusal."""
    for number in ("x", "1.5", "1x", "NaN"):
        message = f'The `/params/id` property must be integer. You sent "{number}".'
        for answer in (client.get(f"{ADMIN}/segments/{number}/strategies"), client.delete(f"{ADMIN}/segments/{number}")):
            assert answer.status == 400
            assert answer.json()["details"] == [{"message": message, "path": "/params/id"}]
        assert client.delete(f"{ADMIN}/segments/{number}", token=OWNER_SECRET).status == 403


def test_numbers_of_segments_that_a_strategy_gets(client: AppClient) -> None:
    """The ids must be numbers that a segment may have."""
    for number in (-1, 2**31, 1e300, 1.5):
        answer = client.post(f"{ADMIN}/segments/strategies", OF_STRATEGY | {"segmentIds": [number]})
        assert answer.status == 400
        assert answer.json()["details"][0]["path"] == "/body/segmentIds/0"


def test_owners_and_what_belongs_to_their_project(client: AppClient) -> None:
    """Owners create, change and delete in their project; no body lets them change what is global or another project's."""
    mine, path = {"project": "default"}, f"{ADMIN}/segments"
    client.post(path, SEGMENT)
    client.post(path, SEGMENT | {"name": "far", "project": "other"})
    assert client.post(path, SEGMENT | {"name": "mine"} | mine, token=OWNER_SECRET).status == 201
    assert client.post(path, SEGMENT | {"name": "for all", "projectId": "default"}, token=OWNER_SECRET).status == 403
    for number in (1, 2):
        for body in (SEGMENT, SEGMENT | mine, SEGMENT | {"project": "other"}):
            assert client.put(f"{path}/{number}", body, token=OWNER_SECRET).status == 403
        assert client.ask("DELETE", f"{path}/{number}", mine, token=OWNER_SECRET).status == 403
    assert client.put(f"{path}/3", SEGMENT | {"name": "mine", "project": "other"}, token=OWNER_SECRET).status == 403
    for body in (SEGMENT, SEGMENT | {"project": None}, SEGMENT | {"projectId": "default"}):  # type: ignore[assignment]
        assert client.put(f"{path}/3", body | {"name": "for all"}, token=OWNER_SECRET).status == 403
    assert client.put(f"{path}/3", SEGMENT | {"name": "still"} | mine, token=OWNER_SECRET).status == 204
    assert client.delete(f"{path}/3", token=MEMBER_SECRET).status == 403
    assert client.delete(f"{path}/3", token=OWNER_SECRET).status == 204


def test_owners_and_the_context_fields_of_their_project(client: AppClient) -> None:
    """Owners change a field of their project if the body names the project, as on the real server, and never a global field."""
    path = f"{ADMIN}/context"
    assert client.post(path, {"name": "mine", "project": "default"}, token=OWNER_SECRET).status == 201
    for body in ({"name": "all"}, {"name": "all", "projectId": "default"}):
        assert client.post(path, body, token=OWNER_SECRET).status == 403
    assert client.put(f"{path}/mine", {"project": "default"}, token=OWNER_SECRET).status == 200
    assert client.put(f"{path}/mine", {}, token=OWNER_SECRET).status == 403
    assert client.put(f"{path}/plan", {"project": "default"}, token=OWNER_SECRET).status == 403
    assert client.put(f"{path}/nosuch", {"project": "default"}, token=OWNER_SECRET).status == 403
    assert client.put(f"{path}/no%00such", {"project": "default"}, token=OWNER_SECRET).status == 403


def test_tags_need_a_permission_for_the_features_project(client: AppClient) -> None:
    """Members have the permission in their project. An unknown feature is in no project, so only an administrator gets the 404."""
    for secret in (USER_SECRET, EDITOR_SECRET, OWNER_SECRET, MEMBER_SECRET):
        assert client.post(f"{ADMIN}/features/web/tags", TAG, token=secret).status == 201
    for feature in ("elsewhere", "nosuch", "no%00such"):
        assert client.post(f"{ADMIN}/features/{feature}/tags", TAG, token=EDITOR_SECRET).status == 403
    assert client.post(f"{ADMIN}/features/elsewhere/tags", TAG).status == 201
    assert client.post(f"{ADMIN}/features/nosuch/tags", TAG).status == 404
    refused = client.put(f"{ADMIN}/features/web/tags", CHANGES, token=VIEWER_SECRET)
    assert (refused.status, refused.json()["permissions"]) == (403, ["UPDATE_FEATURE"])


def test_a_change_is_a_new_revision_and_reading_is_none(client: AppClient) -> None:
    """Clients get a changed segment immediately; a refused call changes nothing."""
    before = client.server.store.revision()
    client.get(f"{ADMIN}/segments")
    client.post(f"{ADMIN}/segments/validate", {"name": "free"})
    client.post(f"{ADMIN}/segments", SEGMENT | {"name": ""})
    assert client.server.store.revision() == before
    client.post(f"{ADMIN}/segments", SEGMENT)
    assert client.server.store.revision() == before + 1
