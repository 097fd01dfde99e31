"""The page of the proxies: who polls, and whether a change has arrived at each."""

from __future__ import annotations

from typing import Any

from flagsvc.testing import FakeClock
from support.flagservers import BACKEND_SECRET, AppClient, app_client
from support.page_scene import Visitor, pass_time

FEATURES = "/api/client/features"
GIVEN = {"features": [{"name": "a"}]}


def poll(client: AppClient, instance: str, tag: str | None = None, app: str = "web") -> str:
    """Poll as a proxy does, and return the tag of the answer."""
    names = {"unleash-appname": app, "unleash-instanceid": instance, "unleash-sdk": "flagsvc:1.0"}
    answer = client.get(FEATURES, token=BACKEND_SECRET, headers={**names, "if-none-match": tag})
    assert answer.status == (200 if tag is None else 304) or tag is not None
    return answer.headers["etag"]


def rows(visitor: Visitor) -> dict[str, Any]:
    """Return the rows of the page, by instance."""
    return {each["instanceId"]: each for each in visitor.data("/proxies")["proxies"]}


def test_a_change_arrives(database_url: str) -> None:
    """After a change an instance is behind until its next poll; the page counts those that have it."""
    clock = FakeClock()
    with app_client(database_url, given=GIVEN, clock=clock) as client:
        visitor = Visitor(client)
        assert "No proxy" in visitor.see("/proxies").text
        tags = {each: poll(client, each) for each in ("one", "two")}
        assert "2 of 2" in visitor.see("/proxies").text
        visitor.send("/flags/a/development/on")
        assert {each["newest"] for each in rows(visitor).values()} == {False}
        pass_time(clock, 15)
        poll(client, "one", tags["one"])
        found = rows(visitor)
        assert (found["one"]["newest"], found["two"]["newest"]) == (True, False)
        assert found["one"]["revision"] > found["two"]["revision"] and found["one"]["interval"] == 15.0
        page = visitor.see("/proxies").text
        assert "1 of 2" in page and "an older one" in page and "flagsvc:1.0" in page
        pass_time(clock, 61)
        poll(client, "one")
        assert "1 of 1" in visitor.see("/proxies").text and rows(visitor)["two"]["gone"]


def test_a_change_elsewhere_is_no_news(database_url: str) -> None:
    """A change of another environment leaves the document as it is, so every instance still has the newest."""
    with app_client(database_url, given=GIVEN) as client:
        visitor = Visitor(client)
        poll(client, "one")
        visitor.send("/flags/a/production/on")
        assert rows(visitor)["one"]["newest"]


def test_hostile_names(database_url: str) -> None:
    """What an instance calls itself is shown as text."""
    with app_client(database_url, given=GIVEN) as client:
        poll(client, "<script>i</script>", app="<script>a</script>")
        page = Visitor(client).see("/proxies").text
        assert "<script>a" not in page and "&lt;script&gt;a&lt;/script&gt;" in page
