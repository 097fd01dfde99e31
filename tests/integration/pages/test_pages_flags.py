"""The list of flags and the page of a flag: words, filters, switches, data, and hostile texts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import update

from flagsvc.pages.headers import POLICY
from flagsvc.server.api.route import Auth
from flagsvc.server.application import PAGE_ROUTES
from flagsvc.server.pages.page import SITE
from flagsvc.server.store.resources.usage import UsageCount, add_counts
from flagsvc.server.store.schema import feature_environments as states
from support.flagservers import USER_SECRET, VIEWER_SECRET, AppClient, app_client
from support.page_forms import HOSTILE, SAME_ORIGIN, Visitor

STRATEGY = {
    "name": "flexibleRollout",
    "title": HOSTILE,
    "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "new"},
    "constraints": [{"contextName": HOSTILE, "operator": "IN", "values": [HOSTILE]}],
}
GIVEN: dict[str, Any] = {
    "features": [
        {"name": "new", "description": HOSTILE, "type": "experiment"},
        {"name": "plain", "stale": True},
        {"name": "settings.json"},
    ]
}
PRODUCTION = "/api/admin/projects/default/features/new/environments/production"


def prepare(client: AppClient) -> None:
    """Give a flag a strategy, and switch it on."""
    assert client.post(f"{PRODUCTION}/strategies", STRATEGY).status == 200
    assert client.post(f"{PRODUCTION}/on").status == 200


@pytest.fixture
def visitor(client: AppClient) -> Visitor:
    """Give an administrator who is signed in."""
    return Visitor(client)


def test_the_list_says_what_flags_do(visitor: Visitor) -> None:
    """Each flag has its words in each environment, in the page and in its data."""
    data = visitor.data("/flags?q=new")
    assert [each["name"] for each in data["flags"]] == ["new"]
    states = {each["name"]: each for each in data["flags"][0]["environments"]}
    assert states["production"]["enabled"] and states["production"]["protected"]
    assert states["production"]["words"][0].startswith("25 % by userId")
    page = visitor.see("/flags").text
    assert 'title="25 % by userId and ' in page and "<bdi>25 %</bdi>" in page and ">stale</span>" in page


FILTERED = {
    "": ["new", "plain", "settings.json"],
    "q=pla": ["plain"],
    "type=experiment": ["new"],
    "state=stale": ["plain"],
    "state=active": ["new", "settings.json"],
    "state=archived": [],
    "unused=30": ["new", "plain", "settings.json"],
    "q=type:experiment": ["new"],
    "q=PLA+IN+state:stale": ["plain"],
    "q=pla+new": [],
    "type=release&q=type:experiment": ["new", "plain", "settings.json"],
    "q=what:new": ["new", "plain", "settings.json"],
    "q=%22what:new%22": [],
    "project=nowhere": [],
    "sort=-name": ["settings.json", "plain", "new"],
    "page=2": [],
    "page=x&sort=nothing&unused=-1": ["new", "plain", "settings.json"],
}
"""Query → the flags of the page."""


def test_filters_are_in_the_address(visitor: Visitor) -> None:
    """Every filter narrows the list, typed or in the address; what is no filter or no number is not applied."""
    for query, names in FILTERED.items():
        assert [each["name"] for each in visitor.data(f"/flags?{query}")["flags"]] == names, query
        assert visitor.see(f"/flags?{query}").status == 200


def test_flags_that_clients_ask_for_are_not_unseen(client: AppClient, visitor: Visitor) -> None:
    """A flag that a client has asked for leaves the list of those that no client asks for."""
    client.server.keyring.save_seen_times()
    with client.server.store.writing(None) as tx:
        tx.db.execute(update(states).where(states.c.feature == "plain").values(last_seen_at=tx.now))
    assert [each["name"] for each in visitor.data("/flags?unused=30")["flags"]] == ["new", "settings.json"]
    assert visitor.data("/flags?sort=-lastSeenAt")["flags"][0]["name"] == "plain"


def test_a_flag_shows_every_environment(visitor: Visitor) -> None:
    """The page and its data have the strategies in words and the switches."""
    flag = visitor.data("/flags/new")["flag"]
    assert [each["name"] for each in flag["environments"]] == ["production", "development"]
    assert flag["environments"][0]["strategies"][0]["words"].startswith("25 % by userId and ")
    page = visitor.see("/flags/new").text
    assert page.count('role="switch"') == 2 and 'aria-checked="true"' in page


def report(client: AppClient, *, yes: int, no: int, **more: Any) -> None:
    """Report requests for the flag `new` in the present hour, or at a `moment`."""
    place, app, variants = more.pop("environment", "production"), more.pop("app", "web"), more.pop("variants", {})
    with client.server.store.recording() as tx:
        add_counts(tx, [UsageCount("new", app, place, more.pop("moment", tx.now), yes, no, variants)])


def test_the_use_of_a_flag_as_a_picture(client: AppClient, visitor: Visitor) -> None:
    """The flag's page draws requests by hour, production first. A table, a card and the applications have the same numbers."""
    assert "No application has asked for this flag yet." in visitor.see("/flags/new").text
    report(client, yes=1485, no=4012)
    report(client, yes=0, no=3, environment="development", app=HOSTILE)
    page = visitor.see("/flags/new").text
    name = "Requests of new in production, last 24 hours. At most 5,497; on 27 %; off 73 %."
    assert f'role="img" aria-label="{name}"' in page and "<title>1,485 on, 4,012 off</title>" in page
    assert '<td data-label="on">1,485</td><td data-label="off">4,012</td>' in page and page.count('data-local="moment"') == 24
    assert "1,485 on · 4,012 off this hour" in page and "5,497 this hour · 5,497 in 24 hours" in page
    assert 'href="/ui/flags/new?environment=development#use">Show <bdi>development</bdi></a>' in page
    data = visitor.data("/flags/new?environment=development&span=week")["flag"]["use"]
    assert sum(data["picture"]["series"][1]["values"]) == data["rows"][0]["no"] == 3
    assert (len(data["picture"]["marks"]), data["environment"], data["words"]) == (7, "development", "last 7 days")
    week = visitor.see("/flags/new?environment=nowhere&span=week").text
    assert 'data-hx-get="/ui/flags/new?environment=production&amp;span=week"' in week


def test_the_environment_of_a_picture(client: AppClient, visitor: Visitor) -> None:
    """The flag was first used in it. Of many environments a list offers the others, for the same time."""
    report(client, yes=0, no=3, environment="development")
    page = visitor.see("/flags/new").text
    assert "Requests of new in development, last 24 hours." in page and "Show <bdi>production</bdi>" in page
    silent = visitor.see("/flags/new?environment=production").text
    assert "that it asked for this flag in production in the last 24 hours." in silent
    for name in ("one", "two", "three"):
        client.post("/api/admin/environments", {"name": name, "type": "test"})
        assert client.post("/api/admin/projects/default/environments", {"environment": name}).status == 200
    week = visitor.see("/flags/new?span=week").text
    assert "<option selected>development</option><option>one</option>" in week.replace("\n", "")
    assert '<input type="hidden" name="span" value="week">' in week and "Show <bdi>" not in week


def test_the_variants_of_a_picture(client: AppClient, visitor: Visitor) -> None:
    """Variants that were reported are parts of the bars, by their names, beside on without a variant and off."""
    report(client, yes=10, no=10, variants={HOSTILE: 5, "blue": 3, "disabled": 10})
    series = visitor.data("/flags/new")["flag"]["use"]["picture"]["series"]
    assert [(each["name"], sum(each["values"])) for each in series] == [
        (HOSTILE, 5),
        ("blue", 3),
        ("on, without a variant", 2),
        ("off", 10),
    ]
    page = visitor.see("/flags/new").text
    assert "<bdi>blue</bdi> 15 %" in page and "<script>alert" not in page


def test_code_for_a_flag(client: AppClient, visitor: Visitor) -> None:
    """Each SDK has code with the name of the flag and the address of the server; that of a flag with variants asks for one."""
    snippets = visitor.data("/flags/new")["snippets"]
    assert len(snippets) >= 8 and visitor.see("/flags/new").text.count('class="snippet"') == len(snippets)
    for each in snippets:
        assert each["code"].count("new") and "://" in each["code"] and "@" not in each["code"].replace("@unleash/", ""), each
    strategy = STRATEGY | {"variants": [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}]}
    assert client.post(f"{PRODUCTION}/strategies", strategy).status == 200
    assert all("ariant(" in each["code"] for each in visitor.data("/flags/new")["snippets"])


def test_a_long_description_folds(client: AppClient, visitor: Visitor) -> None:
    """A description of many lines or characters shows its beginning, and opens to all of it. Its direction is its own."""
    folds = (("1\n2\n3\n4", "1\n2\n3\n"), ("word " * 100, "word " * 55 + "word"), ("x" * 300, "x" * 280))
    for text, first in folds:
        assert client.put("/api/admin/projects/default/features/plain", {"description": text}).status == 200
        folded = visitor.data("/flags/plain")["flag"]["folded"]
        assert folded["first"] == first and folded["first"] + folded["rest"] == text
        assert '<details class="fold"><summary><span dir="auto">' in visitor.see("/flags/plain").text
    assert '<p class="description" dir="auto">' in visitor.see("/flags/new").text


def test_a_name_that_ends_like_data(visitor: Visitor) -> None:
    """A flag whose name ends in .json has a page and data of its own, and links lead there."""
    assert "/ui/flags/settings%2Ejson" in visitor.see("/flags").text
    assert "<h1><bdi>settings.json</bdi></h1>" in visitor.see("/flags/settings%2Ejson").text
    assert visitor.data("/flags/settings%2Ejson")["flag"]["name"] == "settings.json"
    assert visitor.see("/flags/settings.json").status == 404


def test_hostile_texts_are_texts(visitor: Visitor) -> None:
    """Any text of a flag is shown as it is, and never becomes a part of the page."""
    for path in (
        "/flags",
        "/flags/new",
        "/flags/new/production/switch",
        "/flags?q=%3Cscript%3E",
        "/flags?tag=%22%3E%3Cscript%3Ealert",
    ):
        page = visitor.see(path).text
        assert "<script>alert" not in page and "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in visitor.see("/flags/new").text


def test_switching(client: AppClient, visitor: Visitor) -> None:
    """A switch changes the flag for clients, tells it, and offers the way back; the way back has a way back, too."""
    answer = visitor.send("/flags/plain/development/on")
    place = answer.headers["location"].removeprefix("/ui")
    assert answer.status == 303 and place.startswith("/flags/plain?undo=")
    page = visitor.see(place).text
    action = place.partition("=")[2]
    assert "You switched plain on in development." in page
    assert f'<form method="post" action="/ui/history/actions/{action}/undo">' in page
    shown = client.get("/api/admin/projects/default/features/plain").json()
    assert [each["enabled"] for each in shown["environments"]] == [True, False]
    assert visitor.send("/flags/plain/development/off").status == 303
    assert not any(each["enabled"] for each in visitor.data("/flags/plain")["flag"]["environments"])


def test_undo_needs_the_permission(client: AppClient, visitor: Visitor) -> None:
    """A viewer may not undo; the page of the question shows it disabled, with the permission named."""
    done = visitor.send("/flags/new/production/off").headers["location"].partition("=")[2]
    viewer = Visitor(client, VIEWER_SECRET)
    refused = viewer.send(f"/history/actions/{done}/undo")
    assert refused.status == 403 and "UPDATE_FEATURE_ENVIRONMENT" in refused.text
    assert 'disabled title="needs UPDATE_FEATURE_ENVIRONMENT"' in viewer.see(f"/history/actions/{done}/undo").text
    assert not visitor.data("/flags/new")["flag"]["environments"][0]["enabled"]


def test_an_address_tells_no_false_news(client: AppClient, visitor: Visitor) -> None:
    """A link cannot make a page say what is not so, nor tell one user what another did."""
    done = visitor.send("/flags/new/production/off").headers["location"].partition("=")[2]
    others = Visitor(client, VIEWER_SECRET)
    for page in (others.see(f"/flags/new?undo={done}").text, visitor.see("/flags/new?undo=%3Cscript%3E").text):
        assert 'class="done"' not in page and "Undo" not in page


def test_a_protected_environment_asks_first(visitor: Visitor) -> None:
    """Its switch leads to a question that says what will happen. The way back of the switch is a question, too."""
    assert 'action="/ui/flags/new/production/switch"' in visitor.see("/flags/new").text
    asked = visitor.see("/flags/new/production/switch").text
    assert "Switch new off in production?" in asked and "25 % by userId" in asked and "All of them lose it." in asked
    assert "everyone" in visitor.see("/flags/plain/production/switch").text
    place = visitor.send("/flags/new/production/off").headers["location"].removeprefix("/ui")
    action = place.partition("=")[2]
    assert f'<form method="get" action="/ui/history/actions/{action}/undo">' in visitor.see(place).text
    assert "switched new off in production" in visitor.see(f"/history/actions/{action}/undo").text


def test_what_is_not_there(visitor: Visitor) -> None:
    """An unknown page is an error page with a status, and JSON for who asks for data."""
    for path in ("/flags/nosuch", "/flags/plain/nowhere/switch", "/nowhere", "/static/0/style.css", "/flags/a%zz"):
        answer = visitor.see(path)
        assert answer.status in (400, 404) and "This did not work" in answer.text
        assert visitor.see(path, accept="application/json").headers["content-type"].startswith("application/json")


def test_maintenance(client: AppClient, visitor: Visitor) -> None:
    """During maintenance pages are read-only, and people can still sign in."""
    client.post("/api/admin/maintenance", {"enabled": True})
    answer = visitor.send("/flags/plain/development/on")
    assert answer.status == 503 and "maintenance mode" in answer.text
    assert visitor.send("/try", fields={"environment": "production"}).status == 200
    assert Visitor(client).see("/flags").status == 200


def test_every_answer_is_guarded(visitor: Visitor) -> None:
    """Pages allow nothing of another origin, and no cache keeps them. None has a CORS header."""
    for path in ("/flags", "/flags.json", "/flags/new", "/sign-in", "/nowhere"):
        headers = visitor.see(path, origin="https://evil.example").headers
        assert headers["content-security-policy"] == POLICY and headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert not [name for name in headers if name.startswith("access-control")]


def test_no_inline_code(visitor: Visitor) -> None:
    """No page has a script, a style or a handler of its own: the policy would refuse it."""
    for path in ("/flags", "/flags/new", "/sign-in", "/flags/new/production/switch", "/nowhere"):
        page = visitor.see(path).text
        assert " style=" not in page and "<style" not in page and " onclick=" not in page
        assert page.count("<script") == page.count("<script src=")
        assert not re.search(r'(href|src|action)="[a-z]+:', page)


def test_files_last(client: AppClient, visitor: Visitor) -> None:
    """A file has a digest in its path, is immutable, needs no session, and every page names the current one."""
    page = visitor.see("/flags").text
    for name in ("style.css", "pages.js", "htmx-4.0.1.min.js", "symbol.svg"):
        path = f"/static/{SITE.files.address(name)}"
        assert f"/ui{path}" in page
        answer = Visitor(client, None).see(path)
        assert answer.status == 200 and "immutable" in answer.headers["cache-control"]


def test_a_base_path(database_url: str) -> None:
    """Below a base path every link, form and redirect leads below it."""
    with app_client(database_url, given=GIVEN, base="/team") as client:
        body = f"token={USER_SECRET}".encode()
        form = {"content-type": "application/x-www-form-urlencoded", **SAME_ORIGIN}
        answer = client.post("/team/ui/sign-in", body, token=None, headers=form)
        assert answer.headers["location"] == "/team/ui/flags" and "Path=/team" in answer.headers["set-cookie"]
        page = client.get("/team/ui/flags", headers={"accept": "text/html"}).text
        for mark in ('href="', 'src="', 'action="'):
            assert all(each.startswith(("/team/ui", "#")) for each in page.split(mark)[1:])
        away = client.get("/team/ui/flags?q=a", token=None)
        assert away.headers["location"] == "/team/ui/sign-in?next=%2Fflags%3Fq%3Da"


def test_the_first_page_sends_browsers_to_the_pages(client: AppClient) -> None:
    """A browser gets the pages, other clients the text or JSON as before."""
    assert client.get("/", headers={"accept": "text/html,*/*"}).headers["location"] == "/ui/"
    assert "GET" in client.get("/", headers={"accept": "*/*"}).text


def test_who_is_not_signed_in(client: AppClient) -> None:
    """Every page sends who is not signed in to the sign-in; no form does anything."""
    visitor = Visitor(client, None)
    routes = [each for each in PAGE_ROUTES if each.auth is Auth.PAGE]
    assert len(routes) > 100
    for route in routes:
        path = route.path.removeprefix("/ui").replace(":", "")
        answer = visitor.see(path) if route.method == "GET" else visitor.send(path)
        assert answer.status == (303 if route.method == "GET" else 401), route
        if route.render is not None and route.method == "GET" and path:
            assert visitor.see(f"{path}.json").status == 401, route


def test_doubled_slashes(client: AppClient) -> None:
    """An address with more slashes is that of a page, also if the answer is the sign-in or the page of an error."""
    away = client.get("//ui//flags", token=None)
    assert (away.status, away.headers["location"]) == (303, "/ui/sign-in?next=%2Fflags")
    assert client.get("//ui/nosuch").headers["content-type"] == "text/html; charset=utf-8"


def test_what_is_no_form(client: AppClient) -> None:
    """A body that is no form is refused with a sentence, before anything else happens."""
    form = "application/x-www-form-urlencoded"
    long = b"a=" + b"b" * 200_000
    bodies = ((b"{}", "application/json", 415), (b"a=b", "text/plain", 415), (b"a=%ff", form, 400), (long, form, 413))
    for body, media, status in bodies:
        answer = client.post("/ui/sign-in", body, token=None, headers={"content-type": media, **SAME_ORIGIN})
        assert answer.status == status and "set-cookie" not in answer.headers


def test_pages_of_a_long_list(database_url: str) -> None:
    """More flags than one page shows are on further pages, whose links keep the filters."""
    with app_client(database_url, given={"features": [{"name": f"flag-{each:02}"} for each in range(51)]}) as client:
        visitor = Visitor(client)
        first, second = (visitor.see(f"/flags?q=flag&page={number}").text for number in (1, 2))
        assert 'rel="next" href="/ui/flags?q=flag&amp;page=2"' in first and 'rel="prev"' not in first
        assert 'rel="prev" href="/ui/flags?q=flag&amp;page=1"' in second and 'rel="next"' not in second
        assert "Page 2 of 2" in second and [each["name"] for each in visitor.data("/flags?page=2")["flags"]] == ["flag-50"]
