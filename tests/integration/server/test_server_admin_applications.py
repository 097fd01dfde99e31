"""Registered applications, and the usage of a feature by hours, on the admin API."""

from __future__ import annotations

from datetime import UTC, datetime

from flagsvc.server.store.resources.applications import Registration, register
from flagsvc.server.store.resources.usage import UsageCount, add_counts
from support.flagservers import EDITOR_SECRET, VIEWER_SECRET, AppClient

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
MOMENT = "2026-03-04T12:34:56.789Z"


LISTED: tuple[tuple[str, list[str]], ...] = (
    ("", ["Ab", "bc", "cd"]),
    ("?query=b,%20D", ["Ab", "bc", "cd"]),
    ("?query=a", ["Ab"]),
    ("?limit=1&offset=1", ["bc"]),
    ("?sortOrder=desc&limit=2", ["cd", "bc"]),
    ("?limit=x&offset=-5", ["Ab", "bc", "cd"]),
    ("?limit=99999999999999999999", ["Ab", "bc", "cd"]),
    ("?offset=99999999999999999999", []),
)


def test_the_list_of_applications(client: AppClient) -> None:
    """The list can be searched, sorted and paged; a parameter that should be a number and is not is ignored."""
    with client.server.store.recording() as tx:
        register(tx, [Registration(name, "development") for name in ("cd", "Ab", "bc")])
    for query, names in LISTED:
        found = client.get(f"/api/admin/metrics/applications{query}").json()["applications"]
        assert [row["appName"] for row in found] == names


def test_more_words_than_a_search_may_have(client: AppClient) -> None:
    """Too many different search words are refused; repeated words count once."""
    url = "/api/admin/metrics/applications?query="
    assert client.get(url + "a," * 5000).status == 200
    assert client.get(url + ",".join(map(str, range(51)))).status == 400


def test_an_application_by_hand(client: AppClient) -> None:
    """A user with the permission makes, changes and deletes an application; others may only read it."""
    url = "/api/admin/metrics/applications/by%20hand"
    values = {"url": "u", "color": "c", "icon": "i", "description": "d", "strategies": ["x"], "appName": "other"}
    assert client.post(url, values, token=VIEWER_SECRET).status == 403
    made = [client.post(url, values, token=EDITOR_SECRET), client.post(url, {"url": "v"})]
    assert [(answer.status, answer.body) for answer in made] == [(202, b"")] * 2
    empty = {"instances": [], "seenToggles": [], "links": {"self": "/api/applications/by hand"}}
    look = {"description": "d", "url": "v", "color": "c", "icon": "i", "strategies": [{"name": "x", "notFound": True}]}
    shown = client.get(url, token=VIEWER_SECRET).json()
    assert shown == {"appName": "by hand", "createdAt": MOMENT} | look | empty
    assert client.delete(url, token=VIEWER_SECRET).status == 403
    assert [(answer.status, answer.body) for answer in (client.delete(url), client.delete(url))] == [(200, b"")] * 2
    gone = client.get(url)
    message = "Could not find appName=by hand"
    expected = {"name": "NotFoundError", "message": message, "details": [{"message": message}]}
    assert (gone.status, gone.json()) == (404, expected)
    assert client.post(url, {"strategies": "x"}).status == 400


HOURS = (
    ("", 24),
    ("?hoursBack=2", 2),
    ("?hoursBack=1.5", 2),
    ("?hoursBack=0", 24),
    ("?hoursBack=49", 24),
    ("?hoursBack=x", 24),
    ("?hoursBack=2&hoursBack=3", 24),
    ("?hoursBack=1e1", 10),
)


def test_how_many_hours(client: AppClient) -> None:
    """A caller can ask for 1 to 48 hours; any other value means a day."""
    client.post("/api/admin/projects/default/features", {"name": "one"})
    with client.server.store.recording() as tx:
        add_counts(tx, [UsageCount("one", "shop", "development", NOW, 3, 1)])
    for query, hours in HOURS:
        answer = client.get(f"/api/admin/client-metrics/features/one/raw{query}").json()
        assert (len(answer["data"]), answer["version"], answer["maturity"]) == (hours, 1, "stable")
