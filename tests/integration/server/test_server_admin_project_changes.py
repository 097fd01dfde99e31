"""Projects are created, changed and deleted on the admin API (decision 0024)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from flagsvc.server.store.schema import events
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, VIEWER_SECRET, AppClient, what_changed

URL = "/api/admin/projects"
TOKENS = "/api/admin/api-tokens"
SHOP = f"{URL}/shop"
GIVEN: dict[str, Any] = {
    "environments": [{"name": "asleep", "enabled": False}],
    "projects": [{"id": "other", "environments": []}],
    "users": [{"name": "second", "projectRoles": [{"project": "other", "role": "owner"}]}],
    "tokens": [{"type": "personal", "user": "second", "secret": "user:secret-of-the-second"}],
}


def recorded(client: AppClient, project: str = "shop") -> list[tuple[str, Any]]:
    """Return type and data of every event of a project."""
    with client.server.store.reading() as tx:
        query = select(events).where(events.c.project == project).order_by(events.c.id)
        return [(row.type, what_changed(row)) for row in tx.db.execute(query)]


def test_one_is_created_changed_and_deleted(client: AppClient) -> None:
    """Each change is shown, and recorded with what was before and after."""
    answer = client.post(URL, {"id": "shop", "name": "Shop"})
    first = answer.json()
    assert (answer.status, answer.headers["location"]) == (201, "projects/shop")
    assert first == {
        "id": "shop",
        "name": "Shop",
        "description": None,
        "mode": "open",
        "defaultStickiness": "default",
        "featureLimit": None,
        "featureNaming": {"pattern": None, "example": None, "description": None},
        "environments": ["development", "production"],
    }
    changes = {"name": "The shop", "description": "d", "defaultStickiness": "userId", "featureLimit": 1}
    assert client.put(SHOP, changes).status == 200
    second = first | changes
    naming = {"pattern": "shop-[a-z]+", "example": "shop-a"}
    assert client.put(f"{SHOP}/settings", {"mode": "protected", "featureNaming": naming}).status == 200
    third = second | {"mode": "protected", "featureNaming": {**naming, "description": None}}
    shown = client.get(f"{SHOP}/overview").json()
    assert {key: shown[key] for key in third if key not in ("id", "environments")} == {
        key: each for key, each in third.items() if key not in ("id", "environments")
    }
    assert client.delete(SHOP).status == 200
    assert client.get(f"{SHOP}/overview").status == client.put(SHOP, {}).status == client.delete(SHOP).status == 404
    *changes_told, (kind, last) = recorded(client)
    assert changes_told == [
        ("project-created", first),
        ("project-updated", {"before": first, "after": second}),
        ("project-updated", {"before": second, "after": third}),
    ]
    assert (kind, last) == ("project-deleted", last | third)
    assert last["roles"] == [{"userId": 1, "role": "owner"}]


def test_the_settings_hold_at_once(client: AppClient) -> None:
    """The limit, the pattern and the stickiness of a project decide about its next flag."""
    client.post(URL, {"id": "shop", "name": "Shop", "featureLimit": 1, "environments": ["production"]})
    client.put(f"{SHOP}/settings", {"featureNaming": {"pattern": "shop-[a-z]+"}})
    client.put(SHOP, {"defaultStickiness": "userId"})
    assert client.post(f"{SHOP}/features", {"name": "a"}).json()["name"] == "PatternError"
    assert client.post(f"{SHOP}/features", {"name": "shop-a"}).status == 201
    assert client.post(f"{SHOP}/features", {"name": "shop-b"}).status == 403
    place = f"{SHOP}/features/shop-a/environments/production/strategies"
    assert client.post(place, {"name": "flexibleRollout"}).json()["parameters"]["stickiness"] == "userId"
    assert client.put(SHOP, {"featureLimit": None}).status == 200
    assert client.put(f"{SHOP}/settings", {"featureNaming": {}}).status == 200
    assert client.post(f"{SHOP}/features", {"name": "b"}).status == 201


def test_who_creates_one_owns_it(client: AppClient) -> None:
    """An editor may do in the new project what an owner may, at once, and nothing in another one."""
    assert client.post(URL, {"id": "shop", "name": "Shop"}, token=EDITOR_SECRET).status == 201
    for call in (
        ("POST", f"{SHOP}/features", {"name": "a"}),
        ("POST", f"{SHOP}/features/a/environments/production/on", None),
        ("PUT", SHOP, {"name": "Mine"}),
        ("DELETE", f"{SHOP}/features/a", None),
        ("DELETE", SHOP, None),
    ):
        assert client.ask(*call, token=EDITOR_SECRET).status in (200, 201, 202), call
    assert client.put(f"{URL}/other", {"name": "x"}, token=EDITOR_SECRET).status == 403
    assert client.delete(f"{URL}/other", token=EDITOR_SECRET).status == 403
    assert client.post(URL, {"name": "x"}, token=VIEWER_SECRET).status == 403
    assert client.post(f"{URL}/validate", {"id": "x"}, token=VIEWER_SECRET).status == 403
    assert client.delete(f"{URL}/other", token="user:secret-of-the-second").status == 200
    assert client.post(URL, {"name": "x"}, token=ADMIN_SECRET).status == 201


IDS = (("Große Läden!", "grosse-laden"), ("Default", "default-1"), ("东京", "project"), ("a" * 100, "a" * 90))


def test_an_id_is_derived_from_the_name(client: AppClient) -> None:
    """It is part of a path, and free."""
    for name, number in IDS:
        assert client.post(URL, {"name": name}).json()["id"] == number
        assert client.post(URL, {"name": name, "id": None}).json()["id"] != number


REFUSED: tuple[tuple[dict[str, Any], int, str], ...] = (
    ({"name": "x", "id": "other"}, 409, "A project with this id already exists."),
    ({"name": "x", "id": "a b"}, 400, '"id" must be URL friendly. You provided "a b".'),
    ({"name": ""}, 400, '"name" is not allowed to be empty.'),
    ({"name": "x", "defaultStickiness": ""}, 400, '"defaultStickiness" is not allowed to be empty.'),
    ({"name": "x", "environments": ["production", "no", "none"]}, 400, "These environments do not exist: 'no', 'none'"),
    ({"id": "*", "name": "x"}, 400, '"id" must not be *, which stands for all projects'),
    ({}, 400, "The `/body/name` property is required. It was not present on the data you sent."),
    ({"name": "x", "mode": "secret"}, 400, "The `mode` property must be equal to one of the allowed values"),
)


def test_what_cannot_be_created(client: AppClient) -> None:
    """The error gives the reason, and nothing is created."""
    for body, status, text in REFUSED:
        answer = client.post(URL, body)
        assert (answer.status, answer.json()["details"][0]["message"][: len(text)]) == (status, text)
        assert len(client.get(URL).json()["projects"]) == 2


BAD_PATTERNS = (
    ({"pattern": "a b"}, 'No name of a flag has white space, but the naming pattern "a b" asks for it'),
    ({"pattern": "a\\s"}, 'No name of a flag has white space, but the naming pattern "a\\s" asks for it'),
    ({"pattern": "("}, 'The naming pattern "(" is not a regular expression of JavaScript'),
    ({"pattern": "a+", "example": "b"}, 'The naming example "b" does not match the pattern "a+"'),
    ({"example": "b"}, "A naming example needs a pattern beside it"),
    ({"pattern": "", "description": "d"}, "A naming description needs a pattern beside it"),
    ({"pattern": "a" * 10_001}, 'The naming pattern "aaaa'),
)


def test_a_bad_naming_pattern(client: AppClient) -> None:
    """The error gives the reason, and the pattern stays."""
    for naming, text in BAD_PATTERNS:
        answer = client.put(f"{URL}/other/settings", {"featureNaming": naming})
        assert (answer.status, answer.json()["details"][0]["message"][: len(text)]) == (400, text)
        assert recorded(client, "other") == []


def test_checking_an_id(client: AppClient) -> None:
    """The check answers as the creation would."""
    assert client.post(f"{URL}/validate", {"id": "shop"}).status == 200
    assert client.post(f"{URL}/validate", {"id": "other"}).status == 409
    assert client.post(f"{URL}/validate", {"id": ".."}).status == 400


def test_one_with_flags_stays(client: AppClient) -> None:
    """A project with active features is not deleted, nor is the default one."""
    client.post(URL, {"id": "shop", "name": "Shop"})
    client.post(f"{SHOP}/features", {"name": "a"})
    refused = client.delete(SHOP)
    assert (refused.status, refused.json()["name"]) == (403, "InvalidOperationError")
    assert refused.json()["message"] == "You can not delete a project with active feature flags"
    assert client.get(f"{SHOP}/features/a").status == 200
    assert client.delete(f"{URL}/default").json()["message"] == "You can not delete the default project!"


def test_what_goes_with_one(client: AppClient) -> None:
    """Archived features, segments, fields and tokens of the project are deleted and recorded; a shared token loses the project."""
    client.post(URL, {"id": "shop", "name": "Shop"})
    client.post(f"{SHOP}/features", {"name": "a"})
    number = client.post("/api/admin/segments", {"name": "s", "project": "shop", "constraints": []}).json()["id"]
    client.post(f"{SHOP}/features/a/environments/production/strategies", {"name": "default", "segments": [number]})
    client.post("/api/admin/context", {"name": "f", "project": "shop"})
    token = {"tokenName": "t", "type": "backend"}
    alone = client.post(TOKENS, {**token, "projects": ["shop"]}).json()["secret"]
    shared = client.post(TOKENS, {**token, "projects": ["shop", "other"]}).json()["secret"]
    assert client.get("/api/client/features", token=alone).status == 200
    client.delete(f"{SHOP}/features/a")
    assert client.delete(SHOP).status == 200
    assert client.get("/api/client/features", token=alone).status == 401
    assert client.get("/api/client/features", token=shared).status == 200
    assert [each["projects"] for each in client.get(f"{TOKENS}/t").json()["tokens"]] == [["other"]]
    assert client.get("/api/admin/context/f").status == client.get(f"/api/admin/segments/{number}").status == 404
    kinds = [kind for kind, _ in recorded(client)]
    gone = ["feature-deleted", "segment-deleted", "api-token-deleted", "project-deleted"]
    assert kinds[kinds.index("feature-archived") :] == ["feature-archived", *gone]


def test_one_whose_segment_others_use_stays(client: AppClient) -> None:
    """The refusal names the segment, and nothing is deleted."""
    client.post(URL, {"id": "shop", "name": "Shop"})
    client.post(f"{URL}/default/features", {"name": "b"})
    number = client.post("/api/admin/segments", {"name": "s", "constraints": []}).json()["id"]
    place = f"{URL}/default/features/b/environments/production/strategies"
    assert client.post(place, {"name": "default", "segments": [number]}).status == 200
    with client.server.store.writing(None) as tx:
        tx.db.exec_driver_sql("UPDATE segments SET project = 'shop'")
    refused = client.delete(SHOP)
    assert (refused.status, refused.json()["name"]) == (409, "ConflictError")
    assert "segment s" in refused.json()["message"]
    assert client.get(f"{SHOP}/overview").status == 200
