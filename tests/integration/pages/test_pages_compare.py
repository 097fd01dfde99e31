"""Comparing two environments and copying flags: only what differs, what a copy changes, and all of it in one transaction."""

from __future__ import annotations

import html
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import event

from flagsvc.server.pages.plans import show_plans
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.planning import ImportRequest, make_copies
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient

QUARTER = {"rollout": "25", "stickiness": "userId", "groupId": "a"}
PRODUCTION_SECRET = "*:production.secret-of-a-proxy-in-production"
GIVEN: dict[str, Any] = {
    "environments": [{"name": "staging", "type": "test", "sortOrder": 9000}],
    "projects": [
        {"id": "default", "name": "Default", "environments": ["development", "production", "staging"]},
        {"id": "other", "name": HOSTILE, "environments": ["development", "production"]},
        {"id": "small", "name": "Small", "environments": ["development"]},
    ],
    "tokens": [{"type": "backend", "secret": PRODUCTION_SECRET}],
    "features": [
        {"name": "a", "type": "experiment"},
        {"name": "b"},
        {"name": "same"},
        {"name": "gone", "archived": True},
        {"name": "theirs", "project": "other"},
        {"name": "alone", "project": "small"},
    ],
}
VARIANT = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "userId"}
DEVELOPMENT = "/ui/compare?from=development&to=production"


def place(flag: str, environment: str, project: str = "default") -> str:
    """Return the path of a flag in an environment."""
    return f"/api/admin/projects/{project}/features/{flag}/environments/{environment}"


def prepare(pages: PageClient) -> None:
    """Let flags differ between the environments."""
    sent = {"name": "flexibleRollout", "title": HOSTILE, "parameters": QUARTER}
    assert pages.client.post(f"{place('a', 'development')}/strategies", sent).status == 200
    for where in (place("a", "development"), place("b", "production"), place("theirs", "development", "other")):
        assert pages.client.post(f"{where}/on").status == 200


def state(pages: PageClient, flag: str, environment: str) -> Any:
    """Return a flag in an environment, without ids."""
    found = pages.client.get(place(flag, environment)).json()
    strategies = [{name: each[name] for name in each if name != "id"} for each in found["strategies"]]
    return found["enabled"], strategies


def names(pages: PageClient, query: str = "") -> list[str]:
    """Return the flags of a page."""
    return [each["name"] for each in pages.client.get(f"/ui/compare.json?{query}").json()["flags"]]


def document(pages: PageClient) -> bytes:
    """Return what clients get in production, without the revision."""
    answer = pages.client.get("/api/client/features", token=PRODUCTION_SECRET)
    assert answer.status == 200
    return answer.body.partition(b'"meta"')[0]


def events(pages: PageClient, action: str) -> list[Any]:
    """Return the events of an action."""
    return list(pages.client.get(f"/api/admin/search/events?groupId=IS:{action}").json()["events"])


DIFFERING = {
    "": ["a", "alone", "b", "theirs"],
    "from=development&to=staging": ["a", "alone", "theirs"],
    "from=staging": ["a", "alone", "theirs"],
    "to=development": ["a", "alone", "b", "theirs"],
    "from=production&to=staging": ["b", "theirs"],
    "q=th": ["theirs"],
    "project=other": ["theirs"],
    "sort=-name": ["theirs", "b", "alone", "a"],
    "page=2": [],
    "from=development&to=development": [],
    "from=nowhere": [],
}
"""Query → the flags of the page."""


def test_only_what_differs(pages: PageClient) -> None:
    """Archived flags and flags without a difference are not listed; the filters and the order are in the address."""
    assert {query: names(pages, query) for query in DIFFERING} == DIFFERING


def test_words(pages: PageClient) -> None:
    """Each side says what the flag is there; a flag that a side does not have cannot be ticked."""
    shown = pages.get("/ui/compare").text
    assert "<mark>on</mark>" in shown and "<mark>off</mark>" in shown and "25 % by userId</mark>" in shown
    assert "<script>alert" not in shown and HOSTILE in html.unescape(shown)
    rows = {each["name"]: each for each in pages.data("/ui/compare")["flags"]}
    assert [each["words"] for each in rows["alone"]["to"]] == ["not in this environment"]
    assert [each["copyable"] for each in rows.values()] == [True, False, True, True]
    assert "Choose two different environments." in pages.get("/ui/compare?from=production&to=production").text
    missing = pages.get(f"/ui/compare?from={HOSTILE}")
    assert missing.status == 404 and "There is no environment" in missing.text and "<script>alert" not in missing.text


def test_a_copy(pages: PageClient) -> None:
    """The page shows the copy before it is done. The copy is one action; afterwards the flags are the same in both."""
    form = pages.form(pages.get(DEVELOPMENT), "page=1")
    shown = pages.press(form, "preview", flag=["a", "theirs"])
    assert shown.status == 200 and "production needs confirmation" in shown.text
    assert "Copy into production, project default" in shown.text and "project other" in shown.text
    assert not state(pages, "a", "production")[0]
    done = pages.press(pages.form(shown, "page=1"), "save")
    assert done.status == 303 and done.headers["location"].startswith("/ui/compare?from=development&to=production&undo=")
    assert state(pages, "a", "production") == state(pages, "a", "development")
    assert names(pages, "from=development&to=production") == ["alone", "b"]
    told = events(pages, done.headers["location"].rpartition("=")[2])
    assert {each["way"] for each in told} == {"page"} and {each["project"] for each in told} == {"default", "other"}


def test_the_notice_of_many_changes(pages: PageClient) -> None:
    """The page after a copy asks the database as often for nine flags as for three, also for rights in a project only."""
    counts = []
    for number in (3, 9):
        flags = [f"of-{number}-{each}" for each in range(number)]
        for name in flags:
            pages.client.post("/api/admin/projects/default/features", {"name": name})
            pages.client.post(f"{place(name, 'development')}/on")
        shown = pages.press(pages.form(pages.get(DEVELOPMENT), "page=1"), "preview", flag=flags, token=EDITOR_SECRET)
        done = pages.press(pages.form(shown, "page=1"), "save", token=EDITOR_SECRET)
        assert done.status == 303
        asked: list[str] = []
        engine = pages.client.server.store.engine

        def note(*given: Any, asked: list[str] = asked) -> None:
            asked.append(given[2])

        event.listen(engine, "before_cursor_execute", note)
        action = done.headers["location"].rpartition("=")[2]
        page = pages.get(f"/ui/settings?undo={action}", token=EDITOR_SECRET)
        event.remove(engine, "before_cursor_execute", note)
        assert "more changes" in page.text and "Undo" in page.text
        counts.append(len(asked))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("meanwhile", [False, True])
def test_flags_are_read_before_others_wait(pages: PageClient, meanwhile: bool) -> None:
    """A copy makes its requests before its transaction; where a flag changes in between, it makes them again, of what is there."""
    store, boss = pages.client.server.store, Actor(1, "boss", root_role="admin")
    call: Any = SimpleNamespace(store=store, actor=boss)
    made: list[Any] = []

    def make(tx: Tx) -> list[ImportRequest]:
        made.append(make_copies(tx, ["a", "same"], "development", ["production"]))
        if meanwhile and len(made) == 1:
            with store.writing(boss) as other:
                strategies.set_state(other, StrategyPlace("default", "same", "development"), enabled=True)
        return list(made[-1])

    shown = show_plans(call, make)
    assert len(made) == (2 if meanwhile else 1)
    found = [each["name"] for plan in shown["plans"] for each in plan["flags"]]
    assert found == (["a", "same"] if meanwhile else ["a"])


def test_a_copy_is_undone_whole(pages: PageClient) -> None:
    """One box copies every flag that is in both environments. Undone, clients get what they got before, byte for byte."""
    where = "/api/admin/projects/default/features/a/variants-batch"
    assert pages.client.put(where, {"environments": ["production"], "variants": [VARIANT]}).status == 200
    before = document(pages)
    form = pages.form(pages.get(DEVELOPMENT), "page=1")
    shown = pages.press(form, "preview", all="yes")
    done = pages.press(pages.form(shown, "page=1"), "save")
    assert document(pages) != before and names(pages, "from=development&to=production") == ["alone"]
    action = done.headers["location"].rpartition("=")[2]
    assert f"/history/actions/{action}/undo" in pages.get(done.headers["location"]).text
    assert pages.post(f"/ui/history/actions/{action}/undo").status == 303
    assert document(pages) == before
    assert names(pages, "from=development&to=production") == ["a", "alone", "b", "theirs"]


def test_nothing_is_copied_unseen(pages: PageClient) -> None:
    """Without a preview, or if something else would change by now, nothing is copied, and it is shown."""
    form = pages.form(pages.get(DEVELOPMENT), "page=1")
    assert form.buttons[0] == ("do", "preview") and ("do", "save") not in form.buttons
    fields = [*form.fields, ("flag", "a"), ("do", "save")]
    assert pages.post(form.action, fields).status == 409
    first = pages.form(pages.press(form, "preview", flag=["a"]), "page=1")
    assert pages.client.post(f"{place('a', 'production')}/on").status == 200
    again = pages.press(first, "save")
    assert again.status == 409 and "nothing is copied yet" in again.text
    assert state(pages, "a", "production") != state(pages, "a", "development")
    more = pages.press(pages.form(again, "page=1"), "save", flag=["a", "b"])
    assert more.status == 409 and state(pages, "b", "production")[0]
    assert pages.press(pages.form(more, "page=1"), "save").status == 303
    assert state(pages, "a", "production") == state(pages, "a", "development")
    assert state(pages, "b", "production") == state(pages, "b", "development")


UNCOPYABLE: tuple[tuple[list[str], int, str], ...] = (
    (["gone"], 404, "There is no active flag gone"),
    ([HOSTILE], 404, "There is no active flag"),
    (["alone"], 404, "The flag alone is not in the environment production"),
)


def test_what_cannot_be_copied(pages: PageClient) -> None:
    """The reason is at the form, and what was ticked stays."""
    form = pages.form(pages.get(DEVELOPMENT), "page=1")
    for flags, status, message in UNCOPYABLE:
        shown = pages.press(form, "preview", flag=flags)
        assert shown.status == status and message in shown.text and "<script>alert" not in shown.text
        ticked = [value for name, value in pages.form(shown, "page=1").fields if name == "flag"]
        assert ticked == flags if flags != ["alone"] else "alone" in html.unescape(shown.text)


def test_variants_become_the_same_too(pages: PageClient) -> None:
    """An import leaves variants where the data set has none; a copy takes them away, and says so."""
    where = "/api/admin/projects/default/features/same/variants-batch"
    assert pages.client.put(where, {"environments": ["production"], "variants": [VARIANT]}).status == 200
    form = pages.form(pages.get(DEVELOPMENT), "page=1")
    shown = pages.press(form, "preview", flag=["same"])
    assert "<mark>variants: blue" in shown.text and "<mark>variants: none</mark>" in shown.text
    assert pages.press(pages.form(shown, "page=1"), "save").status == 303
    assert pages.client.get(f"{place('same', 'production')}/variants").json()["variants"] == []
    back = pages.form(pages.get("/ui/compare?from=production&to=development"), "page=1")
    shown = pages.press(back, "preview", flag=["same"])
    assert "nothing would change" in shown.text and ("do", "save") not in pages.form(shown, "page=1").buttons


def test_who_may_not(pages: PageClient) -> None:
    """A viewer sees what would change and which permissions are missing, but no button that copies; admin tokens import nothing."""
    page = pages.get(DEVELOPMENT, token=VIEWER_SECRET)
    assert page.text.count("needs UPDATE_FEATURE") == 4 and "needs UPDATE" not in pages.get(DEVELOPMENT).text
    form = pages.form(page, "page=1")
    data = pages.post("/ui/compare.json", [("flag", "a")], token=VIEWER_SECRET).json()
    assert data["found"]["obstacle"] == "needs CREATE_FEATURE_STRATEGY, UPDATE_FEATURE in production"
    shown = pages.press(form, "preview", token=VIEWER_SECRET, flag=["a", "b"])
    assert "needs CREATE_FEATURE_STRATEGY, DELETE_FEATURE_STRATEGY, UPDATE_FEATURE in production" in shown.text
    form = pages.form(shown, "page=1")
    assert ("do", "save") not in form.buttons
    assert pages.post(form.action, [*form.fields, ("do", "save")], token=VIEWER_SECRET).status == 400
    shown = pages.press(form, "preview", token=EDITOR_SECRET, flag=["a", "b"])
    refused = pages.press(pages.form(shown, "page=1"), "save", token=ADMIN_SECRET)
    assert refused.status == 400 and "admin token" in refused.text
    assert pages.press(pages.form(shown, "page=1"), "save", token=EDITOR_SECRET).status == 303


def test_a_flag_to_several_environments(pages: PageClient) -> None:
    """The page of a flag copies it to every ticked environment at once; what is the same already is left alone."""
    assert 'href="/ui/flags/a/copy"' in pages.get("/ui/flags/a").text
    form = pages.form(pages.get("/ui/flags/a/copy?from=development"), "/copy")
    shown = pages.press(form, "preview", to=["production", "staging"])
    assert "Copy into production" in shown.text and "Copy into staging" in shown.text
    done = pages.press(pages.form(shown, "/copy"), "save")
    assert done.status == 303 and done.headers["location"].startswith("/ui/flags/a?undo=")
    wanted = state(pages, "a", "development")
    assert state(pages, "a", "production") == state(pages, "a", "staging") == wanted
    told = events(pages, done.headers["location"].rpartition("=")[2])
    assert {each["environment"] for each in told} == {"production", "staging"}
    again = pages.press(form, "preview", to=["production", "staging"])
    assert "already the same in production, staging" in again.text


def test_environments_that_cannot_be(pages: PageClient) -> None:
    """The reason is at the form."""
    form = pages.form(pages.get("/ui/flags/a/copy"), "/copy")
    for source, target, status, message in (
        ("development", "development", 400, "cannot be copied to the environment that it is copied from"),
        ("nowhere", "production", 404, "The flag a is not in the environment nowhere"),
        ("development", HOSTILE, 404, "The flag a is not in the environment"),
    ):
        shown = pages.post(form.action, [("from", source), ("to", target), ("do", "preview")])
        assert shown.status == status and message in shown.text and "<script>alert" not in shown.text
    assert pages.get("/ui/flags/nothing/copy").status == 404
    assert pages.get("/ui/flags/gone/copy").headers["location"] == "/ui/flags/gone/archived"


def test_the_only_other_environment_is_ticked(pages: PageClient) -> None:
    """Where a flag has two environments, the form offers the copy to the other one; with three it ticks none."""

    def ticked(path: str) -> list[str]:
        form = pages.form(pages.get(f"/ui/flags/{path}"), "/copy")
        return [value for name, value in form.fields if name == "to"]

    assert ticked("theirs/copy") == ["production"]
    assert ticked("theirs/copy?from=production") == ["development"]
    assert ticked("a/copy") == []


def test_the_environment_to_copy_from(pages: PageClient) -> None:
    """The form offers an environment where the flag is on, production first; where it is on nowhere, the first one."""
    offered = [pages.form(pages.get(f"/ui/flags/{name}/copy"), "/copy").value("from") for name in ("a", "b", "same")]
    assert offered == ["development", "production", "development"]
    assert pages.client.post(f"{place('a', 'production')}/on").status == 200
    assert pages.form(pages.get("/ui/flags/a/copy"), "/copy").value("from") == "production"


def test_who_may_not_copy_a_flag(pages: PageClient) -> None:
    """A viewer sees the permission beside each environment, and no button that copies."""
    shown = pages.get("/ui/flags/a/copy", token=VIEWER_SECRET)
    assert shown.text.count("needs UPDATE_FEATURE") == 3
    shown = pages.press(pages.form(shown, "/copy"), "preview", token=VIEWER_SECRET, to=["staging"])
    assert "needs CREATE_FEATURE_STRATEGY, UPDATE_FEATURE in staging" in shown.text
    assert ("do", "save") not in pages.form(shown, "/copy").buttons
