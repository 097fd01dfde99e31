"""The tokens of a project on the admin API; the answers are compared with the real server's in another test."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sqlalchemy import select

from flagsvc.server.store.schema import events
from support.flagservers import AppClient

SHOP = "/api/admin/projects/shop/api-tokens"
MEMBER = "user:secret-of-the-member"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop"}],
    "features": [{"name": "a", "project": "shop"}, {"name": "b"}],
    "users": [{"name": "member", "projectRoles": [{"project": "shop", "role": "member"}]}],
    "tokens": [{"type": "personal", "user": "member", "secret": MEMBER}],
}


def test_a_member_makes_a_token_and_takes_it_back(client: AppClient) -> None:
    """The token reads the project's flags at once; deleted by its masked secret, it reads nothing at once. No event has it."""
    answer = client.post(SHOP, {"tokenName": "t", "type": "backend"}, token=MEMBER)
    assert (answer.status, answer.headers["cache-control"]) == (201, "no-store")
    secret = answer.json()["secret"]
    names = [each["name"] for each in client.get("/api/client/features", token=secret).json()["features"]]
    assert names == ["a"]
    listed = client.get(SHOP, token=MEMBER)
    masked = listed.json()["tokens"][0]["secret"]
    assert secret not in listed.body.decode() and masked.startswith("shop:development.")
    assert client.delete(f"{SHOP}/{quote(masked, safe='')}", token=MEMBER).status == 200
    assert client.get("/api/client/features", token=secret).status == 401
    with client.server.store.reading() as tx:
        query = select(events.c.type, events.c.created_by, events.c.data).where(events.c.type.startswith("api-token"))
        rows = tx.db.execute(query.order_by(events.c.id)).all()
    assert [(row.type, row.created_by) for row in rows] == [("api-token-created", "member"), ("api-token-deleted", "member")]
    assert secret not in str(rows) and masked not in str(rows)
