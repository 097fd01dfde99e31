"""Changing a flag, its tags and links, archiving and reviving it: by forms alone, with the rights of the API."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update

from flagsvc.server.store import schema
from flagsvc.server.store.engines import make_engine
from support.page_forms import HOSTILE, PageClient, PageForm

FEATURES = "/api/admin/projects/default/features"
EDIT = "/ui/flags/a/edit"
GIVEN: dict[str, Any] = {"features": [{"name": "a"}]}


def test_changing_a_flag(pages: PageClient) -> None:
    """Description, type, stale and impression data change; the second of two people is told what the first did."""
    mine, theirs = (pages.form(pages.get(EDIT), "/edit") for _ in range(2))
    assert pages.press(theirs, "save", description="theirs", stale="on").status == 303
    conflict = pages.press(mine, "save", description="mine", type="kill-switch")
    assert conflict.status == 409
    assert '<td data-label="theirs">theirs</td><td data-label="yours">mine</td>' in conflict.text
    assert pages.press(pages.form(conflict, "/edit"), "save").status == 303
    flag = pages.client.get(f"{FEATURES}/a").json()
    assert (flag["description"], flag["type"], flag["stale"]) == ("mine", "kill-switch", False)
    assert pages.get("/ui/flags/nosuch/edit").status == 404


def test_tags(pages: PageClient) -> None:
    """Tags come and go by buttons."""
    form = pages.form(pages.get(EDIT), "/tags")
    assert pages.press(form, "add", value="a:b&c").status == 303
    tags = pages.client.get("/api/admin/features/a/tags").json()["tags"]
    assert [(each["type"], each["value"]) for each in tags] == [("simple", "a:b&c")]
    form = pages.form(pages.get(EDIT), "/tags")
    assert pages.press(form, "remove:simple:a:b&c").status == 303
    assert pages.client.get("/api/admin/features/a/tags").json()["tags"] == []


def test_archiving_and_reviving(pages: PageClient) -> None:
    """An archived flag has a page with a button that revives it, off everywhere."""
    pages.client.post(f"{FEATURES}/a/environments/development/on")
    gone = pages.press(pages.form(pages.get(EDIT), "/archive"))
    assert gone.status == 303 and gone.headers["location"].startswith("/ui/flags/a/archived?undo=")
    assert pages.get("/ui/flags/a").headers["location"] == "/ui/flags/a/archived"
    page = pages.get("/ui/flags/a/archived")
    assert pages.press(pages.form(page, "/revive")).headers["location"].startswith("/ui/flags/a?undo=")
    assert not pages.client.get(f"{FEATURES}/a/environments/development").json()["enabled"]
    assert pages.get("/ui/flags/a/archived").status == 303


def links(pages: PageClient) -> list[dict[str, Any]]:
    """Return the links of the flag as the admin API shows them."""
    return list(pages.client.get(f"{FEATURES}/a").json()["links"])


def add(pages: PageClient, url: str = "https://example.com/1", title: str = "") -> str:
    """Add a link with the form, and return its id."""
    assert pages.press(pages.form(pages.get(EDIT), "/links"), url=url, title=title).status == 303
    return str(links(pages)[-1]["id"])


def form_of(pages: PageClient, identity: str, end: str = "") -> PageForm:
    """Return the form of a link."""
    return pages.form(pages.get(EDIT), f"/links/{identity}{end}")


def test_adding_a_link(pages: PageClient) -> None:
    """The link is on the page of the flag, opens no way back to it, and no text of it becomes HTML."""
    form = pages.form(pages.get(EDIT), "/links")
    told = pages.press(form, url="https://example.com/a?b='<i>'", title=HOSTILE)
    page = pages.get(told.headers["location"]).text
    assert "You added the link https://example.com" in page
    assert 'href="https://example.com/a?b=%27%3Ci%3E%27" rel="noopener noreferrer"' in page
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert "<script>alert" not in pages.get(EDIT).text
    assert [(each["url"], each["title"]) for each in links(pages)] == [("https://example.com/a?b=%27%3Ci%3E%27", HOSTILE)]
    add(pages, "example.com/plain")
    assert (links(pages)[1]["url"], links(pages)[1]["title"]) == ("https://example.com/plain", None)


def test_a_link_that_an_earlier_version_links(pages: PageClient, database_url: str) -> None:
    """A stored address that is no page is shown as a text, and can be removed; undo puts it back as it was."""
    identity = add(pages)
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(update(schema.links).values(url="javascript:alert(1)"))
    engine.dispose()
    page = pages.get("/ui/flags/a").text
    assert "javascript:alert(1)" in page and 'href="javascript' not in page
    assert pages.press(form_of(pages, identity), "").status == 400
    form = form_of(pages, identity)
    told = pages.post(f"{form.action}/remove", form.fields)
    assert (told.status, links(pages)) == (303, [])
    pages.undo(told)
    page = pages.get("/ui/flags/a").text
    assert "javascript:alert(1)" in page and 'href="javascript' not in page


def test_changing_and_removing_a_link(pages: PageClient) -> None:
    """Address and title change, an empty title takes it away; undo sets each back. Saving what is there is no change."""
    identity = add(pages, title="T")
    told = pages.press(form_of(pages, identity), url="https://example.com/2", title="U")
    assert "You changed the link https://example.com/2 of a" in pages.get(told.headers["location"]).text
    pages.undo(told)
    assert [(each["id"], each["url"], each["title"]) for each in links(pages)] == [(identity, "https://example.com/1", "T")]
    assert pages.press(form_of(pages, identity), url="https://example.com/2", title="U").status == 303
    assert "Nothing was different" in pages.get(pages.press(form_of(pages, identity)).headers["location"]).text
    assert pages.press(form_of(pages, identity), title="").status == 303
    assert [(each["url"], each["title"]) for each in links(pages)] == [("https://example.com/2", None)]
    form = form_of(pages, identity)
    told = pages.post(f"{form.action}/remove", form.fields)
    assert "You removed the link https://example.com/2 of a" in pages.get(told.headers["location"]).text
    assert links(pages) == []
    pages.undo(told)
    assert [each["id"] for each in links(pages)] == [identity]


def test_two_people_and_a_link(pages: PageClient) -> None:
    """Who saves or removes a link that someone changed meanwhile is told, and changes nothing."""
    identity = add(pages)
    mine = form_of(pages, identity)
    assert pages.press(form_of(pages, identity), title="theirs").status == 303
    conflict = pages.press(mine, title="mine")
    assert conflict.status == 409 and "someone changed this link" in conflict.text and "`mine`" in conflict.text
    assert pages.form(conflict, f"/links/{identity}").value("title") == "theirs"
    assert pages.post(f"{mine.action}/remove", mine.fields).status == 409
    assert [each["title"] for each in links(pages)] == ["theirs"]
    form = form_of(pages, identity)
    assert pages.post(f"{form.action}/remove", form.fields).status == 303
    assert pages.press(form, title="late").status == 409 and links(pages) == []


def test_too_many_links(pages: PageClient) -> None:
    """A flag has at most ten links."""
    for number in range(10):
        add(pages, f"https://example.com/{number}")
    refused = pages.press(pages.form(pages.get(EDIT), "/links"), url="https://example.com/more")
    assert refused.status == 403 and "A flag has at most 10 links." in refused.text and len(links(pages)) == 10
