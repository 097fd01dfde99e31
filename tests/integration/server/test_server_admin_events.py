"""The routes of events: lists, searches, pages, permissions and refusals."""

from __future__ import annotations

from typing import Any

from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, VIEWER_SECRET, AppClient

FEATURES = "/api/admin/projects/default/features"
SEARCH = "/api/admin/search/events"


def prepare(client: AppClient) -> None:
    """Make and switch a flag, and make a segment."""
    assert client.post(FEATURES, {"name": "cart"}, token=EDITOR_SECRET).status == 201
    assert client.post(f"{FEATURES}/cart/environments/development/on", token=EDITOR_SECRET).status == 200
    assert client.post("/api/admin/segments", {"name": "all", "constraints": []}).status == 201


def kinds(client: AppClient, path: str, **asker: str) -> list[str]:
    """Return the types of the events that a path lists."""
    return [each["type"] for each in client.get(path, **asker).json()["events"]]


SWITCHED = ["feature-environment-enabled", "feature-strategy-add"]
ALL = ["segment-created", *SWITCHED, "feature-created"]


def test_lists_have_the_newest_first(client: AppClient) -> None:
    """The list of the server, of a project and of a flag each have their events, and count them."""
    for path, wanted in (
        ("/api/admin/events", ALL),
        ("/api/admin/events?project=default", ALL[1:]),
        ("/api/admin/events/cart", ALL[1:]),
        ("/api/admin/events/other", []),
    ):
        assert kinds(client, path) == wanted
        assert client.get(path).json()["totalEvents"] == len(wanted)


def test_only_administrators_see_everything(client: AppClient) -> None:
    """The list of the server needs ADMIN; a search of anybody else finds only events of projects."""
    assert client.get("/api/admin/events", token=VIEWER_SECRET).status == 403
    assert kinds(client, SEARCH, token=VIEWER_SECRET) == ALL[1:]
    assert kinds(client, "/api/admin/events/cart", token=VIEWER_SECRET) == ALL[1:]
    assert kinds(client, SEARCH, token=ADMIN_SECRET) == ALL


REFUSED = (
    ("type=feature-created", "The `/query/type` property must match pattern"),
    ("id=IS:abc", 'The `/query/id` property must be numbers. You sent "abc".'),
    ("createdBy=IS:ada", 'The `/query/createdBy` property must be numbers. You sent "ada".'),
    ("from=IS:2026-02-30", 'The `/query/from` property must be a day that exists. You sent "IS:2026-02-30".'),
    ("to=2026-01-01", "The `/query/to` property must match pattern"),
    ("query=a&query=b", "The `/query/query` property must be string"),
)


def test_a_search_that_means_nothing_is_refused(client: AppClient) -> None:
    """The 400 names the place, the error, and the expected value.

    A long text is refused as well: to look for one takes time for each of its characters.
    """
    for query, message in REFUSED:
        answer = client.get(f"{SEARCH}?{query}")
        assert (answer.status, answer.json()["name"]) == (400, "BadDataError")
        assert answer.json()["details"][0]["message"].startswith(message)
    assert client.get(f"{SEARCH}?query={'x' * 1000}").status == 200
    assert "1000 characters" in client.get(f"{SEARCH}?query={'x' * 1001}").body.decode()


def test_events_of_one_request_are_found_by_their_group(client: AppClient) -> None:
    """The group of an event finds all events of its request, with the token that was used and the way."""
    event = client.get(f"{SEARCH}?type=IS:feature-strategy-add").json()["events"][0]
    found: list[dict[str, Any]] = client.get(f"{SEARCH}?groupId=IS:{event['groupId']}").json()["events"]
    assert [each["type"] for each in found] == SWITCHED
    assert {(each["createdBy"], each["tokenName"], each["way"]) for each in found} == {("writer", "writer", "api")}
    assert found[0]["summary"] == "**writer** switched **cart** on in **development**"


def test_authors_are_listed(client: AppClient) -> None:
    """Each author of an event is listed once."""
    names = [each["name"] for each in client.get("/api/admin/event-creators").json()]
    assert sorted(names) == ["boss", "writer"]


def test_an_import_has_its_way(client: AppClient) -> None:
    """The events of an import say that it was one."""
    empty: dict[str, Any] = {
        name: [] for name in ("featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments", "tagTypes")
    }
    data = {**empty, "features": [{"name": "new", "type": "release"}], "dependencies": []}
    body = {"project": "default", "environment": "development", "data": data}
    assert client.post("/api/admin/features-batch/import", body).status == 200
    assert {each["way"] for each in client.get("/api/admin/events/new").json()["events"]} == {"import"}
