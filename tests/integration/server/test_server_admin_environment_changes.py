"""Environments are created, changed and deleted on the admin API."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from flagsvc.server.store.schema import events
from support.flagservers import EDITOR_SECRET, AppClient, what_changed

URL = "/api/admin/environments"
PROJECT = "/api/admin/projects/default"
TOKENS = "/api/admin/api-tokens"
GIVEN: dict[str, Any] = {
    "environments": [{"name": "live", "protected": True}],
    "features": [{"name": "a"}],
    "projects": [{"id": "other", "environments": []}],
}


def recorded(client: AppClient) -> list[tuple[Any, ...]]:
    """Return type, environment and data of every event about an environment itself."""
    with client.server.store.reading() as tx:
        rows = tx.db.execute(select(events).where(events.c.type.startswith("environment-")).order_by(events.c.id))
        return [(row.type, row.environment, what_changed(row)) for row in rows]


def test_one_is_created_changed_and_deleted(client: AppClient) -> None:
    """Each change is answered, shown, and recorded with what was before and after."""
    answer = client.post(URL, {"name": "staging", "type": "test", "sortOrder": 5})
    first = answer.json()
    assert (answer.status, answer.headers["location"]) == (201, "environments/staging")
    assert first == {
        "name": "staging",
        "type": "test",
        "sortOrder": 5,
        "enabled": True,
        "protected": False,
        "requiredApprovals": None,
    }
    changed = client.put(f"{URL}/update/staging", {"type": "pre-production"})
    second = first | {"type": "pre-production"}
    assert (changed.status, changed.json()) == (200, second)
    assert client.put(f"{URL}/update/staging", {}).json() == client.get(f"{URL}/staging").json() == second
    assert client.delete(f"{URL}/staging").status == 200
    assert client.get(f"{URL}/staging").status == client.delete(f"{URL}/staging").status == 404
    assert recorded(client) == [
        ("environment-created", "staging", first),
        ("environment-updated", "staging", {"before": first, "after": second}),
        ("environment-deleted", "staging", second | {"strategies": {}}),
    ]


def test_switching_and_sorting_are_recorded(client: AppClient) -> None:
    """Each has an event with the environment before and after; what changes nothing has none."""
    before = client.get(f"{URL}/production").json()
    for _ in range(2):
        assert client.post(f"{URL}/production/off").status == 204
    off = before | {"enabled": False}
    for _ in range(2):
        assert client.put(f"{URL}/sort-order", {"production": 77, "nosuch": 1}).status == 200
    sorted_too = off | {"sortOrder": 77}
    assert recorded(client) == [
        ("environment-updated", "production", {"before": before, "after": off}),
        ("environment-updated", "production", {"before": off, "after": sorted_too}),
    ]


def test_a_new_one_works_at_once(client: AppClient) -> None:
    """A flag is switched on in a new environment, and a token reads it there, without a restart."""
    client.post(URL, {"name": "staging", "type": "test"})
    client.post(f"{PROJECT}/environments", {"environment": "staging"})
    assert client.post(f"{PROJECT}/features/a/environments/staging/on", token=EDITOR_SECRET).status == 200
    secret = client.post(TOKENS, {"tokenName": "t", "type": "backend", "environment": "staging"}).json()["secret"]
    document = client.get("/api/client/features", token=secret).json()
    assert [(each["name"], each["enabled"]) for each in document["features"]] == [("a", True)]


def test_one_that_is_used_stays(client: AppClient) -> None:
    """The refusal names each project and each token; without them the environment and its strategies can go."""
    client.post(URL, {"name": "staging", "type": "test"})
    client.post(f"{PROJECT}/environments", {"environment": "staging"})
    client.post(f"{PROJECT}/features/a/environments/staging/on")
    token = client.post(TOKENS, {"tokenName": "reader", "type": "frontend", "environment": "staging"}).json()["secret"]
    refused = client.delete(f"{URL}/staging")
    assert (refused.status, refused.json()["name"]) == (409, "ConflictError")
    assert refused.json()["message"] == "Environment staging is in use and cannot be deleted"
    assert [each["message"] for each in refused.json()["details"]] == ["project `default` has it", "token `reader` reads it"]
    client.delete(f"{TOKENS}/{token}")
    client.delete(f"{PROJECT}/environments/staging")
    assert client.delete(f"{URL}/staging").status == 200
    assert client.post(URL, {"name": "staging", "type": "test"}).status == 201
    client.post(f"{PROJECT}/environments", {"environment": "staging"})
    assert client.get(f"{PROJECT}/features/a/environments/staging/strategies").json() == []


def test_a_protected_one_stays(client: AppClient) -> None:
    """An environment that the seed protects is not deleted."""
    client.delete(f"{PROJECT}/environments/live")
    refused = client.delete(f"{URL}/live")
    assert (refused.status, refused.json()["name"]) == (403, "InvalidOperationError")
    assert client.get(f"{URL}/live").status == 200


REFUSED = (
    ({"name": "production", "type": "test"}, 409, "There already exists an environment with the name production"),
    ({"name": "a b", "type": "test"}, 400, '"name" must be URL friendly. You provided "a b".'),
    ({"name": "", "type": "test"}, 400, '"name" is not allowed to be empty.'),
    ({"name": "x", "type": ""}, 400, '"type" is not allowed to be empty.'),
    ({"name": "x", "type": "t" * 256}, 400, '"type" length must be less than or equal to 255 characters long.'),
    ({"name": "*", "type": "test"}, 400, '"name" must not be *, which stands for all environments'),
    ({"name": "x"}, 400, "The `/body/type` property is required. It was not present on the data you sent."),
)


def test_what_cannot_be_created(client: AppClient) -> None:
    """The error gives the reason, and nothing is created. The check of a name answers as the creation would."""
    for body, status, text in REFUSED:
        answer = client.post(URL, body)
        assert (answer.status, answer.json()["details"][0]["message"][: len(text)]) == (status, text)
        assert len(client.get(URL).json()["environments"]) == 3
        assert recorded(client) == []
    assert client.post(f"{URL}/validate", {"name": "staging"}).status == 200
    assert client.post(f"{URL}/validate", {"name": "production"}).status == 409
    assert client.post(f"{URL}/validate", {"name": "a b"}).status == 400
    assert client.get(f"{URL}/staging").status == 404
