"""The page of the history: sentences, before and after, filters in the address, and who may see what."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from flagsvc.server.pages import history
from flagsvc.server.store.event_views import WAYS
from flagsvc.server.store.resources import events
from flagsvc.server.store.undo.undo import UNSEEN
from flagsvc.testing import FakeClock
from support.flagservers import EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient
from support.page_forms import Visitor, pass_time
from support.processes import Answer

HOSTILE = "<script>alert(1)</script>"
GIVEN = {"features": [{"name": "a"}, {"name": "b"}]}
CLOCK = FakeClock
FLAG = "/api/admin/projects/default/features/a"


def prepare(client: AppClient) -> None:
    """Change a few things, by pages and by the API."""
    Visitor(client).send("/flags/a/development/on")
    client.put(FLAG, {"name": "a", "description": HOSTILE})
    client.post("/api/admin/projects/default/features/b/environments/production/on")


def told(client: AppClient, query: str = "") -> list[Any]:
    """Return type and way of the events of the page, the newest first."""
    return [(each["type"], each["way"]) for each in Visitor(client).data(f"/history?{query}")["events"]]


def test_what_happened(client: AppClient) -> None:
    """Each change is a sentence, with the way it came about; what was done together is one group."""
    found = told(client, "feature=a")
    assert found[0] == ("feature-metadata-updated", "api")
    assert ("feature-environment-enabled", "page") in found
    page = Visitor(client).see("/history?feature=a").text
    assert "switched a on in development" in page and "done together" in page
    group = Visitor(client).data("/history?feature=b")["events"][0]["groupId"]
    together = Visitor(client).data(f"/history?groupId={group}")["events"]
    assert {each["featureName"] for each in together} == {"b"} and len(together) > 1


def test_before_and_after(client: AppClient) -> None:
    """A change shows only what is different. Hostile texts are texts."""
    [event] = Visitor(client).data("/history?type=feature-metadata-updated")["events"]
    assert event["changes"] == [{"name": "description", "before": None, "after": HOSTILE}]
    page = Visitor(client).see("/history").text
    assert "<script>alert" not in page and "Before and after" in page


SOME = (
    *("feature=b", "environment=production", "q=alert", "project=default", "way=page", "way=api", "createdBy=1"),
    "from=2020-01-01&to=2099-01-01",
    *("last=hour", "last=day", "last=week", "last=hour&from=2020-01-01"),
)
NONE = (
    *("feature=nosuch", "environment=nowhere", "q=nothing-has-this", "way=import", "createdBy=99", "to=2020-01-01"),
    *("page=1000", "last=hour&to=2020-01-01"),
)
"""Queries that find events, and queries that find none."""


def test_filters(client: AppClient) -> None:
    """Each filter of the address narrows the events, and an empty page says so.

    Filters that mean nothing are refused with a sentence that names the filter.
    """
    visitor = Visitor(client)
    for query in (*SOME, *NONE):
        assert bool(visitor.data(f"/history?{query}")["events"]) is (query in SOME), query
        assert ("No event fits" in visitor.see(f"/history?{query}").text) is (query in NONE), query
    for page in ("/history", "/history.jsonl"):
        for query in ("from=2026-02-30", "to=x", "from=%3Cscript%3E", "createdBy=x", "createdBy=" + "9" * 5000):
            name = query.partition("=")[0]
            answer = visitor.see(f"{page}?{query}")
            wanted = f"The `{name}` of the address must be a {'whole number' if name == 'createdBy' else 'day'}"
            assert answer.status == 400 and wanted in answer.text and "<script>" not in answer.text


def test_who_and_how_are_offered(client: AppClient) -> None:
    """The filters offer every user who changed something, and every way. What is chosen is in words, each with a way back."""
    found = Visitor(client).data("/history")["choices"]
    assert {"value": "1", "text": "boss"} in found["createdBy"]
    assert [each["value"] for each in found["way"]] == list(WAYS)
    assert {"value": "99", "text": "user 99"} in Visitor(client).data("/history?createdBy=99")["choices"]["createdBy"]
    page = Visitor(client).see("/history?way=page&createdBy=1").text
    assert '<option value="page" selected>' in page and '<option value="1" selected>' in page
    who, how = Visitor(client).data("/history?way=page&createdBy=1")["active"]
    assert (who, how) == ({"words": "who: boss", "without": "way=page"}, {"words": "how: page", "without": "createdBy=1"})
    assert page.count(": remove this filter") == 2


def test_the_last_hour_day_and_week(client: AppClient, clock: FakeClock) -> None:
    """Links narrow the history to them, keep the other filters, and take the place of days."""
    for hours, wanted in ((0.5, "hour day week"), (1, "day week"), (30, "week"), (200, "")):
        pass_time(clock, hours * 3600)
        answers = {each: client.get(f"/ui/history.json?feature=a&last={each}").json() for each in history.RANGES}
        assert [each for each in answers if answers[each]["events"]] == wanted.split(), hours
    visitor = Visitor(client)
    page = visitor.see("/history?way=page&from=2020-01-01&last=day").text
    assert '"/ui/history?way=page&amp;last=day">day</a>' in page and "aria-current" not in page.partition("<main")[2]
    assert '"/ui/history?way=page&amp;last=day" aria-current="true">' in visitor.see("/history?way=page&last=day").text
    answer = visitor.see("/history.jsonl?last=year")
    assert answer.status == 400 and "The `last` of the address must be hour, day or week, not year" in answer.text


def test_an_action_is_undone_from_any_row(client: AppClient) -> None:
    """Each row of an action leads to the undo of all of it; a row of its own has one button; the page leads back to its filters."""
    visitor = Visitor(client)
    variants = {"environments": ["development", "production"], "variants": [{"name": "v", "weight": 1000}]}
    client.put(f"{FLAG}/variants-batch", variants)
    [*found] = visitor.data("/history?type=feature-environment-variants-updated")["events"]
    assert [(each["together"], each["may_undo_all"]) for each in found] == [(2, True)] * 2
    page = visitor.see("/history?feature=a").text
    undo = f"/ui/history/actions/{found[0]['groupId']}/undo"
    assert page.count(f'action="{undo}"') == 2 and "Undo all 2<" in page
    assert page.count(">Undo this<") >= 2 and 'value="/history?feature=a"' in page
    path = undo.removeprefix("/ui")
    assert "Undo all 2</button>" in visitor.see(path).text
    done = visitor.send(path, back="/history?feature=a")
    assert done.status == 303 and done.headers["location"].startswith("/ui/history?feature=a&undo=")
    assert client.get(f"{FLAG}/environments/production/variants").json()["variants"] == []


def test_what_a_role_never_may_is_not_offered(client: AppClient) -> None:
    """A viewer reads the history without a button of it; an editor has the buttons that the role allows somewhere."""
    page = Visitor(client, VIEWER_SECRET).see("/history").text.partition("<main")[2]
    assert "switched <bdi>a</bdi> on" in page and "Undo" not in page
    assert client.post("/api/admin/tag-types", {"name": "team"}).status == 201
    assert client.post("/api/admin/projects", {"id": "p", "name": "p"}).status == 201
    found = {each["type"]: each["may_undo"] for each in Visitor(client, EDITOR_SECRET).data("/history")["events"]}
    assert found["project-created"] and found["feature-environment-enabled"]


def lines_of(answer: Answer) -> list[Any]:
    """Return the events of a file."""
    assert answer.status == 200 and answer.headers["content-type"] == "application/jsonl", answer.text
    return [json.loads(each) for each in answer.text.splitlines()]


def test_export(client: AppClient) -> None:
    """The file has what the filters show, each event as the admin API answers it, for a session and for a token."""
    query = "feature=a&way=api"
    shown = Visitor(client).data(f"/history?{query}")["events"]
    answer = Visitor(client).see(f"/history.jsonl?{query}")
    assert "link" not in answer.headers and "attachment" in answer.headers["content-disposition"]
    assert [each["id"] for each in lines_of(answer)] == [each["id"] for each in shown] != []
    found = client.get("/api/admin/search/events?feature=IS:a&limit=1000").json()["events"]
    assert lines_of(client.get("/ui/history.jsonl?feature=a", headers={"accept": "*/*"})) == found
    assert f"/ui/history.jsonl?{query.replace('&', '&amp;')}" in Visitor(client).see(f"/history?{query}").text
    assert lines_of(Visitor(client).see("/history.jsonl?feature=nosuch")) == []


@pytest.mark.parametrize(("name", "limit"), [("MOST_LINES", 2), ("MOST_BYTES", 1)])
def test_a_long_export(client: AppClient, monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
    """A file has a bound. A header links to the rest, with the same filters, until all is there once."""
    monkeypatch.setattr(events, "CHUNK", 1)
    whole = [each["id"] for each in lines_of(Visitor(client).see("/history.jsonl?feature=a"))]
    assert len(whole) > 2
    monkeypatch.setattr(history, name, limit)
    found: list[int] = []
    address: str | None = "/ui/history.jsonl?feature=a"
    while address is not None:
        answer = client.get(address)
        part = lines_of(answer)
        assert 0 < len(part) <= 2
        found += [each["id"] for each in part]
        link = re.fullmatch('<(.+)>; rel="next"', answer.headers.get("link", ""))
        address = link and link[1]
    assert found == whole


def test_a_viewer_sees_events_of_projects(client: AppClient) -> None:
    """As in the API, what belongs to no project is for administrators: on the page, and in the file."""
    client.post("/api/admin/user-admin", {"username": "new", "rootRole": 3})
    viewer = Visitor(client, VIEWER_SECRET)
    for seen in (viewer.data("/history")["events"], lines_of(viewer.see("/history.jsonl"))):
        kinds = {each["type"] for each in seen}
        assert "user-created" not in kinds and "feature-metadata-updated" in kinds
    assert told(client)[0][0] == "user-created"


def test_the_question_says_what_stands_in_the_way(client: AppClient) -> None:
    """Before an undo the page tells which later event keeps it from being done, and leads to the undo of that one."""
    visitor = Visitor(client)
    [first] = visitor.data("/history?type=feature-metadata-updated")["events"]
    assert visitor.data(f"/history/{first['id']}/undo")["obstacle"] == ""
    client.put(FLAG, {"name": "a", "description": "later"})
    later = visitor.data("/history?type=feature-metadata-updated")["events"][0]
    page = visitor.see(f"/history/{first['id']}/undo?back=/flags/a").text
    assert "the description was changed later: boss changed the description of a on " in page
    assert f'href="/ui/history/{later["id"]}/undo?back=%2Fflags%2Fa"' in page and "disabled" in page


def test_a_kind_without_undo_says_why(client: AppClient) -> None:
    """The history tells the reason in place of the button, and so does the question."""
    client.post("/api/admin/user-admin", {"username": "newcomer", "rootRole": 3})
    visitor = Visitor(client)
    [event] = visitor.data("/history?type=user-created&q=newcomer")["events"]
    for path in ("/history?q=newcomer", f"/history?groupId={event['groupId']}", f"/history/{event['id']}/undo"):
        assert "Who may sign in is not changed by an undo" in visitor.see(path).text


def test_the_question_hides_what_the_history_hides(client: AppClient) -> None:
    """The question about an event that a viewer may not see is 404, as about an unknown one; one's own can be asked about."""
    assert client.post("/api/admin/segments", {"name": "s", "constraints": []}, token=EDITOR_SECRET).status == 201
    [event] = Visitor(client).data("/history?type=segment-created")["events"]
    for path in (f"/history/{event['id']}/undo", f"/history/actions/{event['groupId']}/undo"):
        for address in (path, f"{path}.json"):
            hidden = Visitor(client, VIEWER_SECRET).see(address)
            assert hidden.status == 404 and "created the segment" not in hidden.text
        for secret in (EDITOR_SECRET, USER_SECRET):
            assert Visitor(client, secret).data(path)["events"] == ["writer created the segment s"]


def test_a_mixed_action_hides_its_hidden_events(client: AppClient) -> None:
    """Of what was done together, a viewer reads only the sentences that the history shows."""
    assert client.post("/api/admin/features/a/tags", {"type": "simple", "value": "secret"}).status == 201
    [event] = Visitor(client).data("/history?type=tag-created")["events"]
    path = f"/history/actions/{event['groupId']}/undo"
    assert "boss created the tag secret" in Visitor(client).data(path)["events"]
    told = Visitor(client, VIEWER_SECRET).data(path)["events"]
    assert UNSEEN in told and "boss created the tag secret" not in told


def test_a_reason_names_no_hidden_event(client: AppClient) -> None:
    """Where a later event stands in the way that the caller may not see, the reason tells nothing of it and leads nowhere."""
    assert client.post("/api/admin/features/a/tags", {"type": "simple", "value": "blue"}).status == 201
    [event] = Visitor(client).data("/history?type=feature-tagged")["events"]
    assert client.ask("DELETE", "/api/admin/tags/simple/blue").status == 200
    path = f"/history/{event['id']}/undo"
    found = Visitor(client, EDITOR_SECRET).data(path)
    assert (found["obstacle"], found["later"]) == (f"the tag was changed later: {UNSEEN}", 0)
    refused = client.ask("POST", f"/api/admin/events/{event['id']}/undo", None, token=EDITOR_SECRET)
    assert refused.status == 409 and refused.json()["message"].endswith(found["obstacle"])
    assert "boss deleted the tag blue" in Visitor(client).data(path)["obstacle"]
