"""Roles in a project are given and taken on the admin API (decision 0024)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from flagsvc.server.store.schema import events
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, VIEWER_SECRET, AppClient, what_changed

SHOP = "/api/admin/projects/shop"
ACCESS = f"{SHOP}/access"
OWNER_SECRET = "user:secret-of-the-owner"
OWNER, MEMBER = 4, 5
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop"}],
    "users": [{"name": "owner", "projectRoles": [{"project": "shop", "role": "owner"}]}],
    "tokens": [{"type": "personal", "user": "owner", "secret": OWNER_SECRET}],
}


def user_id(client: AppClient, name: str) -> int:
    """Return the id of a user."""
    users = client.get("/api/admin/user-admin").json()["users"]
    return int(next(each["id"] for each in users if each["username"] == name))


def test_an_owner_gives_and_takes_roles(client: AppClient) -> None:
    """The role holds at once, and ends at once; each change is recorded with the roles before and after."""
    reader = user_id(client, "reader")
    place = f"{SHOP}/users/{reader}/roles"
    feature = (f"{SHOP}/features", {"name": "a"})
    assert client.post(*feature, token=VIEWER_SECRET).status == 403
    body = {"roles": [MEMBER], "users": [reader], "groups": []}
    assert client.post(ACCESS, body, token=OWNER_SECRET).status == 200
    assert client.post(*feature, token=VIEWER_SECRET).status == 201
    assert client.put(SHOP, {"name": "x"}, token=VIEWER_SECRET).status == 403
    assert client.put(place, {"roles": [OWNER]}, token=OWNER_SECRET).status == 200
    assert client.put(SHOP, {"name": "x"}, token=VIEWER_SECRET).status == 200
    shown = client.get(ACCESS, token=OWNER_SECRET).json()
    assert [(each["username"], each["roleId"], each["roles"]) for each in shown["users"]] == [
        ("reader", OWNER, [OWNER]),
        ("owner", OWNER, [OWNER]),
    ]
    assert [(each["id"], each["name"]) for each in shown["roles"]] == [(OWNER, "Owner"), (MEMBER, "Member")]
    assert client.delete(place, token=OWNER_SECRET).status == 200
    assert client.post(f"{SHOP}/features", {"name": "b"}, token=VIEWER_SECRET).status == 403
    with client.server.store.reading() as tx:
        query = select(events).where(events.c.type.startswith("project-access"))
        rows = [(row.type, what_changed(row)) for row in tx.db.execute(query.order_by(events.c.id))]
    as_owner = {"roles": [OWNER], "userId": reader}
    assert rows == [
        (
            "project-access-added",
            {
                "before": {"users": [{"userId": reader, "roles": []}]},
                "after": {
                    "roles": [{"roleId": MEMBER, "groupIds": [], "userIds": [reader]}],
                    "users": [{"userId": reader, "roles": [MEMBER]}],
                },
            },
        ),
        ("project-access-user-roles-updated", {"before": {"roles": [MEMBER], "userId": reader}, "after": as_owner}),
        ("project-access-user-roles-deleted", as_owner),
    ]


def test_a_given_role_is_added(client: AppClient) -> None:
    """A second role is added to the first one; the same one again changes nothing; none takes all away."""
    reader = user_id(client, "reader")
    for roles in ([OWNER], [MEMBER], [MEMBER, MEMBER]):
        assert client.post(ACCESS, {"roles": roles, "users": [reader, reader]}).status == 200
    found = {each["username"]: each["roles"] for each in client.get(ACCESS).json()["users"]}
    assert found["reader"] == [OWNER, MEMBER]
    assert client.put(f"{SHOP}/users/{reader}/roles", {"roles": []}).status == 200
    assert [each["username"] for each in client.get(ACCESS).json()["users"]] == ["owner"]


def test_who_may(client: AppClient) -> None:
    """A member and a stranger change no roles; an editor, who may change the project `default`, gives only roles of its own."""
    reader, writer = user_id(client, "reader"), user_id(client, "writer")
    client.post(ACCESS, {"roles": [MEMBER], "users": [writer]})
    for call in (("GET", ACCESS, None), ("POST", ACCESS, {"roles": [MEMBER], "users": [reader]})):
        assert client.ask(*call, token=EDITOR_SECRET).status == 403
        assert client.ask(*call, token=VIEWER_SECRET).status == 403
    default = "/api/admin/projects/default/access"
    refused = client.post(default, {"roles": [OWNER], "users": [writer]}, token=EDITOR_SECRET)
    assert (refused.status, refused.json()["name"]) == (403, "InvalidOperationError")
    assert client.post(default, {"roles": [MEMBER], "users": [writer]}, token=ADMIN_SECRET).status == 200
    assert client.post(default, {"roles": [MEMBER], "users": [reader]}, token=EDITOR_SECRET).status == 200
    assert client.post(default, {"roles": [OWNER], "users": [user_id(client, "owner")]}).status == 200
    owners = f"/api/admin/projects/default/users/{user_id(client, 'owner')}/roles"
    assert client.delete(owners, token=EDITOR_SECRET).status == 403


REFUSED = (
    (ACCESS, {"roles": [9], "users": [1]}, 400, "There is no project role 9: 4 is the owner, 5 a member"),
    (ACCESS, {"roles": [1], "users": [1]}, 400, "There is no project role 1: 4 is the owner, 5 a member"),
    (ACCESS, {"roles": [MEMBER], "users": [999]}, 404, "No user found"),
    (ACCESS, {"roles": [MEMBER], "users": [2**63]}, 400, "The `/body/users/0` property must be <="),
    (ACCESS, {"roles": [MEMBER], "users": [1], "groups": [3]}, 400, "This server has no groups"),
    ("/api/admin/projects/nosuch/access", {"roles": [MEMBER], "users": [1]}, 404, "No project found"),
    (ACCESS, {"roles": [MEMBER]}, 400, "The `/body/users` property is required"),
)


def test_what_cannot_be_given(client: AppClient) -> None:
    """The error gives the reason, and nothing is given."""
    for path, body, status, text in REFUSED:
        answer = client.post(path, body)
        assert (answer.status, answer.json()["details"][0]["message"][: len(text)]) == (status, text)
        assert [each["username"] for each in client.get(ACCESS).json()["users"]] == ["owner"]


def test_roles_of_a_user_who_is_not_there(client: AppClient) -> None:
    """They are neither set nor taken."""
    assert client.put(f"{SHOP}/users/999/roles", {"roles": [MEMBER]}).status == 404
    assert client.delete(f"{SHOP}/users/999/roles").status == 404
    assert client.delete("/api/admin/projects/nosuch/users/1/roles").status == 404
    assert client.delete(f"{SHOP}/users/x/roles").status == 400
