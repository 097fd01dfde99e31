"""`/api/admin/user-admin`: only administrators list, make, change and delete users, and their personal tokens."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from flagsvc.server.store.schema import events
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient, what_changed

pytestmark = pytest.mark.one_database

PATH = "/api/admin/user-admin"
ANNA = {"username": "anna", "email": "anna@example.com", "name": "Anna", "rootRole": 2, "sendEmail": False}


@pytest.mark.parametrize("token", [USER_SECRET, ADMIN_SECRET])
def test_an_administrator_makes_a_user(client: AppClient, token: str) -> None:
    """The answer has the user's `Location`, and the list has the new user beside those of the seed."""
    answer = client.post(PATH, ANNA, token=token)
    made = answer.json()
    assert (answer.status, answer.headers["location"]) == (201, str(made["id"])), answer.body
    assert {key: made[key] for key in ("username", "email", "name", "rootRole", "emailSent")} == {
        **{key: each for key, each in ANNA.items() if key != "sendEmail"},
        "emailSent": False,
    }
    answer = client.get(PATH, token=token)
    assert answer.status == 200
    assert [user["username"] for user in answer.json()["users"]] == ["boss", "writer", "reader", "anna"]


def numbers(client: AppClient) -> dict[str, int]:
    """Return the id of each user."""
    return {user["username"]: user["id"] for user in client.get(PATH).json()["users"]}


def recorded(client: AppClient) -> list[tuple[str, object]]:
    """Return type and data of every event."""
    with client.server.store.reading() as tx:
        return [(row.type, what_changed(row)) for row in tx.db.execute(select(events).order_by(events.c.id))]


def test_a_changed_role_holds_at_once(client: AppClient) -> None:
    """A viewer who becomes an editor may create a segment; the event has the user before and after."""
    place = f"{PATH}/{numbers(client)['reader']}"
    segment = ("/api/admin/segments", {"name": "s", "constraints": []})
    assert client.post(*segment, token=VIEWER_SECRET).status == 403
    before = {"id": numbers(client)["reader"], "name": "reader", "username": "reader", "rootRole": 3}
    assert client.put(place, {"rootRole": "Editor", "email": "R@example.com", "name": "Ria"}).status == 200
    after = before | {"name": "Ria", "email": "r@example.com", "rootRole": 2}
    assert recorded(client)[-1] == ("user-updated", {"before": before, "after": after})
    assert client.post(*segment, token=VIEWER_SECRET).status == 201


def test_a_change_of_nothing_is_none(client: AppClient) -> None:
    """What is absent stays, and without a difference there is no event."""
    place = f"{PATH}/{numbers(client)['writer']}"
    before = client.get(place).json()
    events = "/api/admin/events"
    for body in ({}, {"name": before["name"]}):
        count = client.get(events).json()["totalEvents"]
        assert client.put(place, body).status == 200
        assert client.get(place).json() == before and client.get(events).json()["totalEvents"] == count


def test_a_deleted_user_is_refused_at_once(client: AppClient) -> None:
    """The personal tokens go with the user, and the event says who it was."""
    place = f"{PATH}/{numbers(client)['writer']}"
    assert client.get("/api/admin/user", token=EDITOR_SECRET).status == 200
    assert client.delete(place).status == 200
    assert client.get("/api/admin/user", token=EDITOR_SECRET).status == 401
    assert client.get(place).status == client.delete(place).status == client.put(place, {"name": "x"}).status == 404
    kind, data = recorded(client)[-1]
    assert (kind, "writer" in str(data)) == ("user-deleted", True)


def test_the_last_administrator_stays(client: AppClient) -> None:
    """The only administrator is not deleted and keeps the role; with a second one, the first can become a viewer."""
    place = f"{PATH}/{numbers(client)['boss']}"
    for answer in (client.delete(place), client.put(place, {"rootRole": 3}, token=ADMIN_SECRET)):
        assert (answer.status, answer.json()["name"]) == (403, "InvalidOperationError")
    assert client.put(place, {"rootRole": "Admin", "name": "The boss"}).status == 200
    client.put(f"{PATH}/{numbers(client)['writer']}", {"rootRole": 1})
    assert client.get(f"{PATH}/admin-count").json() == {"password": 0, "noPassword": 2, "service": 0}
    assert client.put(place, {"rootRole": 3}).status == 200
    assert client.get(PATH).status == 403


EXPIRY = "2100-01-01T00:00:00.000Z"


def test_an_administrator_makes_a_token_for_a_user(client: AppClient) -> None:
    """The secret is in this answer alone, opens what the user may at once, and nothing once the token is deleted."""
    anna = client.post(PATH, ANNA).json()["id"]
    place = f"{PATH}/{anna}/tokens"
    answer = client.post(place, {"description": "first", "expiresAt": EXPIRY}, token=ADMIN_SECRET)
    made = answer.json()
    assert (answer.status, answer.headers["cache-control"], made["userId"]) == (201, "no-store", anna)
    assert client.get("/api/admin/user", token=made["secret"]).json()["user"]["username"] == "anna"
    assert client.get(PATH, token=made["secret"]).status == 403
    listed = client.get(place)
    assert [each["description"] for each in listed.json()["pats"]] == ["first"]
    assert made["secret"] not in listed.body.decode() + str(recorded(client))
    assert client.delete(f"{place}/{made['id']}").status == 200
    assert client.get("/api/admin/user", token=made["secret"]).status == 401
    assert client.delete(f"{place}/{made['id']}").status == 404
    assert [kind for kind, _ in recorded(client)] == ["user-created", "pat-created", "pat-deleted"]


def test_a_token_of_another_user_is_not_found(client: AppClient) -> None:
    """The path names user and token; a user who is not there has no tokens, and others than administrators get none."""
    known = numbers(client)
    body = {"description": "first", "expiresAt": EXPIRY}
    made = client.post(f"{PATH}/{known['writer']}/tokens", body).json()["id"]
    assert client.delete(f"{PATH}/{known['reader']}/tokens/{made}").status == 404
    assert client.get(f"{PATH}/99999/tokens").status == client.post(f"{PATH}/99999/tokens", body).status == 404
    assert client.get(f"{PATH}/x/tokens").status == client.delete(f"{PATH}/{known['boss']}/tokens/x").status == 400
    for method, path, sent in (("GET", "", None), ("POST", "", body), ("DELETE", f"/{made}", None)):
        answer = client.ask(method, f"{PATH}/{known['writer']}/tokens{path}", sent, token=EDITOR_SECRET)
        assert answer.status == 403
