"""Switches and usage in the list of flags, why it is empty, and who asked for a flag and who changed it on its page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from flagsvc.server.pages.flag_view import MOST_HIDDEN
from flagsvc.server.store.resources import usage
from flagsvc.server.store.resources.usage import UsageCount, add_counts
from support.flagservers import VIEWER_SECRET, AppClient, app_client
from support.page_forms import Visitor

FLAGS = "/api/admin/projects/default/features"
BACK = "/flags?q=a&page=2"
GIVEN = {"features": [{"name": "a"}, {"name": "b"}]}


def report(client: AppClient, application: str, *, hours_ago: float = 0, yes: int = 0, no: int = 0) -> None:
    """Report that an application asked for the flag `a` in development."""
    with client.server.store.writing(None) as tx:
        moment = tx.now - timedelta(hours=hours_ago)
        add_counts(tx, [UsageCount("a", application, "development", moment, yes, no)])


def test_switches(client: AppClient) -> None:
    """The list switches as the page of a flag does, goes back with its filters, and offers to undo it there."""
    visitor = Visitor(client)
    page = visitor.see("/flags?q=a").text
    assert 'form="switches" formaction="/ui/flags/a/development/on"' in page
    assert 'form="asks" formaction="/ui/flags/a/production/switch"' in page
    assert '<input type="hidden" name="back" value="/flags?q=a">' in page
    answer = visitor.send("/flags/a/development/on", back="/flags?q=a")
    place = answer.headers["location"].removeprefix("/ui")
    assert answer.status == 303 and place.startswith("/flags?q=a&undo=")
    told = visitor.see(place).text
    assert "You switched a on in development." in told
    assert '<input type="hidden" name="back" value="/flags?q=a">\n    <button>Undo</button>' in told
    undone = visitor.send(f"/history/actions/{place.rpartition('=')[2]}/undo", back="/flags?q=a")
    assert undone.headers["location"].startswith("/ui/flags?q=a&undo=")
    assert [each["enabled"] for each in visitor.data("/flags?q=a")["flags"][0]["environments"]] == [False, False]


def test_a_protected_environment_asks_and_goes_back(client: AppClient) -> None:
    """The question keeps the list that it came from, also for who cancels. No way back leads to another server."""
    visitor = Visitor(client)
    asked = visitor.see(f"/flags/a/production/switch?{urlencode({'back': BACK})}").text
    assert '<input type="hidden" name="back" value="/flags?q=a&amp;page=2">' in asked
    assert '<a class="button" href="/ui/flags?q=a&amp;page=2">Cancel</a>' in asked
    assert visitor.send("/flags/a/production/on", back=BACK).headers["location"].startswith(f"/ui{BACK}&undo=")
    assert 'href="/ui/flags/a">Cancel' in visitor.see("/flags/a/production/switch").text
    elsewhere = visitor.send("/flags/a/production/off", back="https://elsewhere.example/")
    assert elsewhere.headers["location"].startswith("/ui/flags?undo=")


def test_flags_without_a_switch(client: AppClient) -> None:
    """Nothing switches an archived flag, nor a flag where its project lacks the environment."""
    assert client.delete("/api/admin/projects/default/environments/production").status == 200
    page = Visitor(client).see("/flags")
    assert page.status == 200 and page.text.count('<td data-label="production">–</td>') == 2
    assert page.text.count('role="switch"') == 2
    client.delete(f"{FLAGS}/a")
    archived = Visitor(client).see("/flags?state=archived").text
    assert 'role="switch"' not in archived and "archived" in archived


def test_usage_in_the_list(client: AppClient) -> None:
    """A flag has a line of the last hours, oldest first, whose name says the numbers. A flag that was never used says so."""
    report(client, "web", yes=3, no=1)
    report(client, "ios", yes=2)
    report(client, "web", hours_ago=23, no=10)
    report(client, "web", hours_ago=24, no=1000)
    [a, b] = Visitor(client).data("/flags")["flags"]
    assert (a["asked"], b["asked"], b["line"]) == ([10, *[0] * 22, 6], [], "")
    assert a["line"].startswith("0,0.0 1,20.0 ") and a["line"].endswith(" 23,8.0")
    page = Visitor(client).see("/flags").text
    assert 'aria-label="16 requests in the last 24 hours, at most 10 in one"' in page and "no requests" in page


@pytest.mark.parametrize(
    ("given", "query", "words"),
    [
        ([], "", "No flags yet"),
        ([], "?q=x", "No flags yet"),
        ([{"name": "a", "archived": True}], "", "All flags are archived"),
        ([{"name": "a", "archived": True}], "?q=x", "No flag fits the filters"),
        ([{"name": "a"}], "?state=archived", "No flag fits the filters"),
    ],
)
def test_an_empty_list(database_url: str, given: list[Any], query: str, words: str) -> None:
    """It says why it is empty, and what to do."""
    with app_client(database_url, given={"features": given}) as client:
        page = Visitor(client).see(f"/flags{query}").text
        assert words in page and (words == "No flags yet") is ("Create the first flag" in page)


def test_which_environments_are_shown(database_url: str) -> None:
    """Production comes first. The browser keeps which environments are shown, and whether rows are dense; many are dense always."""
    places = [f"env-{number}" for number in range(5)]
    given = {
        "environments": [{"name": each, "type": "test"} for each in places],
        "projects": [{"id": "default", "environments": ["development", "production", *places]}],
        "features": [{"name": "a"}],
    }
    with app_client(database_url, given=given) as client:
        visitor = Visitor(client)
        known = [each["name"] for each in client.get("/api/admin/environments").json()["environments"]]
        everything = ["production", *(each for each in known if each != "production")]
        assert shown_in(visitor) == (everything, True)
        kept = visitor.send("/list-view", fields={"shown": ["env-3", "development"]}, back="/flags?q=a")
        assert kept.headers["location"] == "/ui/flags?q=a" and "Path=/ui;" in kept.headers["set-cookie"]
        assert kept.headers["set-cookie"].endswith("HttpOnly; SameSite=Lax")
        session, choice = visitor.cookie, kept.headers["set-cookie"].partition(";")[0]
        visitor.cookie = f"{session}; {choice}"
        assert shown_in(visitor) == ([each for each in known if each in ("development", "env-3")], False)
        dense = visitor.send("/list-view", dense="yes", back="/flags").headers["set-cookie"]
        visitor.cookie = f"{session}; {dense.partition(';')[0]}"
        assert shown_in(visitor) == (everything, True), "a list without any environment is of no use"


def test_what_a_browser_can_hide(database_url: str) -> None:
    """As many environments as a browser hides fit into a cookie, however long their names are. More are refused in words."""
    places = [f"{number:0100}" for number in range(MOST_HIDDEN)]
    environments = [{"name": each, "type": "test"} for each in places]
    with app_client(database_url, given={"environments": environments}) as client:
        visitor = Visitor(client)
        kept = visitor.send("/list-view", fields={"shown": ["production", "development"]}, back="/flags")
        cookie = kept.headers["set-cookie"]
        assert kept.status == 303 and len(cookie.encode()) <= 4096
        visitor.cookie = f"{visitor.cookie}; {cookie.partition(';')[0]}"
        assert [each["name"] for each in visitor.data("/flags")["environments"]] == ["production", "development"]
        refused = visitor.send("/list-view", fields={"shown": ["production"]}, back="/flags")
        assert refused.status == 400 and "set-cookie" not in refused.headers
        assert f"these are {MOST_HIDDEN + 1}" in refused.text


def shown_in(visitor: Visitor) -> tuple[list[str], bool]:
    """Return the environments of the list, and whether its rows are dense. Its flag has the same."""
    data = visitor.data("/flags")
    names = [each["name"] for each in data["environments"]]
    assert [each["name"] for each in data["flags"][0]["environments"]] == names
    return names, data["dense"]["used"]


def test_heads_sort(client: AppClient) -> None:
    """The head of a column sorts by it, and the other way round when it is pressed again; the filters stay."""
    visitor = Visitor(client)
    heads = visitor.data("/flags?type=release")["heads"]
    assert heads["name"] == {"address": "type=release&sort=-name", "sort": "ascending"}
    assert heads["lastSeenAt"] == {"address": "type=release&sort=-lastSeenAt", "sort": ""}
    report(client, "web", yes=1)
    assert [each["name"] for each in visitor.data(f"/flags?{heads['lastSeenAt']['address']}")["flags"]] == ["a", "b"]
    again = visitor.data(f"/flags?{heads['lastSeenAt']['address']}")["heads"]["lastSeenAt"]
    assert again == {"address": "type=release&sort=lastSeenAt", "sort": "descending"}
    assert [each["name"] for each in visitor.data(f"/flags?{again['address']}")["flags"]] == ["b", "a"]


def test_active_filters_are_chips(client: AppClient) -> None:
    """Each filter is a link that removes it; what means nothing is told."""
    page = Visitor(client).see("/flags?q=a+type:release+what:x&state=active").text
    assert 'href="/ui/flags?q=a+type%3Arelease+what%3Ax"><bdi>state: active</bdi>' in page
    assert 'href="/ui/flags?q=a+what%3Ax&amp;state=active"><bdi>type: release</bdi>' in page
    assert "There is no filter what." in page


def test_who_asked(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a flag says which applications asked in the last hours, those who asked most first."""
    monkeypatch.setattr(usage, "MAX_APPLICATIONS", 2)
    visitor = Visitor(client)
    page = visitor.see("/flags/a").text
    assert "No application has reported in the last 24 hours that it asked for this flag." in page
    assert "No application has asked for this flag yet." in page and "Show the last 7 days" not in page
    report(client, "<b>web</b>", yes=3, no=1)
    report(client, "<b>web</b>", hours_ago=5, no=10)
    report(client, "ios", yes=1)
    report(client, "old", hours_ago=24, yes=1000)
    asked = visitor.data("/flags/a")["flag"]["askedBy"]
    assert [(each["appName"], each["environment"], each["yes"], each["no"]) for each in asked] == [
        ("<b>web</b>", "development", 3, 11),
        ("ios", "development", 1, 0),
    ]
    page = visitor.see("/flags/a").text
    assert "<bdi>&lt;b&gt;web&lt;/b&gt;</bdi> <small>in <bdi>development</bdi>" in page
    assert "4 this hour · 14 in 24 hours" in page and "These 2 asked most." in page


def test_what_changed_last(client: AppClient) -> None:
    """The page of a flag has its last events as sentences, with the way and the token, and links to all of them.

    Where its events are deleted by their age, the page says so.
    """
    for enabled in ("on", "off") * 3:
        assert client.post(f"{FLAGS}/a/environments/development/{enabled}").status == 200
    visitor = Visitor(client, VIEWER_SECRET)
    flag = visitor.data("/flags/a")["flag"]
    assert [each["words"] for each in flag["history"][:2]] == [
        "boss switched a off in development",
        "boss switched a on in development",
    ]
    assert len(flag["history"]) == 5 < flag["events"]
    page = visitor.see("/flags/a").text
    assert f'<a href="/ui/history?feature=a">All {flag["events"]} events of this flag</a>' in page
    assert "<bdi>boss switched a off in development</bdi>" in page and " · api with " in page
    with client.server.store.writing(None) as tx:
        tx.db.exec_driver_sql("DELETE FROM events")
    assert "No event of this flag is kept." in Visitor(client).see("/flags/a").text
