"""Favorites on the admin API: of one user, first in the search, gone with the flag and with the user, no change for clients."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from flagsvc.server.store.schema import favorites
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient

F = "/api/admin/projects/default/features"
SEARCH = "/api/admin/search/features"
GIVEN = {"features": [{"name": name} for name in ("a", "b", "c")]}


def star(client: AppClient, name: str, token: str = USER_SECRET) -> int:
    """Make a flag a favorite, and return the status."""
    return client.post(f"{F}/{name}/favorites", token=token).status


def names(client: AppClient, query: str, token: str = USER_SECRET) -> list[str]:
    """Return what a search finds, a favorite with a mark."""
    found = client.get(f"{SEARCH}?{query}", token=token).json()["features"]
    return [f"{each['name']}{'*' if each['favorite'] else ''}" for each in found]


def test_favorites_come_first(client: AppClient) -> None:
    """They do where that is asked for, on each page and in each order, and for their user only."""
    assert star(client, "c") == star(client, "b") == star(client, "b") == 200
    assert star(client, "a", VIEWER_SECRET) == 200
    first = "favoritesFirst=true&sortBy=name"
    assert names(client, "sortBy=name") == ["a", "b*", "c*"]
    assert names(client, first) == ["b*", "c*", "a"]
    assert names(client, f"{first}&sortOrder=desc") == ["c*", "b*", "a"]
    assert names(client, f"{first}&offset=1&limit=2") == ["c*", "a"]
    assert names(client, first, VIEWER_SECRET) == ["a*", "b", "c"]
    assert names(client, first, EDITOR_SECRET) == names(client, first, ADMIN_SECRET) == ["a", "b", "c"]
    assert client.delete(f"{F}/b/favorites").status == client.delete(f"{F}/b/favorites").status == 200
    assert names(client, first) == ["c*", "a", "b"]


def test_every_answer_tells_them(client: AppClient) -> None:
    """The flag alone, the flags of its project, and the search have `favorite`."""
    star(client, "a")
    assert [client.get(f"{F}/{name}").json()["favorite"] for name in ("a", "b")] == [True, False]
    assert [each["favorite"] for each in client.get(F).json()["features"]] == [True, False, False]
    assert names(client, "sortBy=name", VIEWER_SECRET) == ["a", "b", "c"]


def test_no_client_asks_again(client: AppClient) -> None:
    """A favorite is no change of flags: no revision, no event, the same tag of the document."""
    tag = client.get("/api/client/features", token=BACKEND_SECRET).headers["etag"]
    revision, events = client.server.store.revision(), client.get("/api/admin/events").json()["totalEvents"]
    star(client, "a")
    assert client.get("/api/client/features", token=BACKEND_SECRET).headers["etag"] == tag
    assert client.server.store.revision() == revision
    assert client.get("/api/admin/events").json()["totalEvents"] == events


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        (f"{F}/nosuch/favorites", USER_SECRET, 404),
        ("/api/admin/projects/other/features/a/favorites", USER_SECRET, 404),
        (f"{F}/a/favorites", ADMIN_SECRET, 403),
        (f"{F}/a/favorites", BACKEND_SECRET, 403),
    ],
)
def test_what_is_refused(client: AppClient, path: str, token: str, status: int) -> None:
    """A favorite is a flag of the project in the path, and belongs to a user."""
    assert client.post(path, token=token).status == client.delete(path, token=token).status == status


def test_they_end_with_the_flag_and_with_the_user(client: AppClient) -> None:
    """Deleting either takes them away. Archiving, changing and importing a flag does not."""
    for name in ("a", "b"):
        star(client, name)
        star(client, name, VIEWER_SECRET)
    client.delete(f"{F}/a")
    client.put(f"{F}/b", {"name": "b", "type": "experiment", "description": "d"})
    assert count(client) == 4
    client.delete("/api/admin/archive/a")
    assert count(client) == 2
    reader = next(each["id"] for each in client.get("/api/admin/user-admin").json()["users"] if each["username"] == "reader")
    assert client.delete(f"/api/admin/user-admin/{reader}").status == 200
    assert count(client) == 1


def count(client: AppClient) -> int:
    """Return how many favorites the server has."""
    with client.server.store.reading() as tx:
        return int(tx.db.execute(select(func.count()).select_from(favorites)).scalar_one())
