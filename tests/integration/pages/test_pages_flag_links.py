"""The links of a flag on pages: shown, added, changed, removed; two people; addresses that are no links; rights."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from flagsvc.server.store import schema
from flagsvc.server.store.engines import make_engine
from support.page_forms import PageClient, PageForm

A = "/api/admin/projects/default/features/a"
EDIT = "/ui/flags/a/edit"
HOSTILE = "<script>alert(1)</script>\"'&"
GIVEN: dict[str, Any] = {"features": [{"name": "a"}]}


def stored(pages: PageClient) -> list[dict[str, Any]]:
    """Return the links of the flag as the admin API shows them."""
    found: list[dict[str, Any]] = pages.client.get(A).json()["links"]
    return found


def add(pages: PageClient, url: str = "https://example.com/1", title: str = "") -> str:
    """Add a link with the form, and return its id."""
    assert pages.press(pages.form(pages.get(EDIT), "/links"), url=url, title=title).status == 303
    return str(stored(pages)[-1]["id"])


def form_of(pages: PageClient, identity: str, end: str = "") -> PageForm:
    """Return the form of a link."""
    return pages.form(pages.get(EDIT), f"/links/{identity}{end}")


def test_adding_one(pages: PageClient) -> None:
    """The link is on the page of the flag, opens no way back to it, and no text of it becomes HTML."""
    form = pages.form(pages.get(EDIT), "/links")
    told = pages.press(form, url="https://example.com/a?b='<i>'", title=HOSTILE)
    page = pages.get(told.headers["location"]).text
    assert "You added the link https://example.com" in page
    assert 'href="https://example.com/a?b=%27%3Ci%3E%27" rel="noopener noreferrer"' in page
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert "<script>alert" not in pages.get(EDIT).text
    assert [(each["url"], each["title"]) for each in stored(pages)] == [
        ("https://example.com/a?b=%27%3Ci%3E%27", HOSTILE)
    ]
    add(pages, "example.com/plain")
    assert (stored(pages)[1]["url"], stored(pages)[1]["title"]) == ("https://example.com/plain", None)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("javascript:alert(1)", "no address of a web page"),
        ("", "Invalid URL"),
    ],
)
def test_what_is_no_link(pages: PageClient, url: str, message: str) -> None:
    """Only an address of a web page is a link. The form comes back with the message and with what was typed."""
    identity = add(pages)
    for end in ("/links", f"/links/{identity}"):
        refused = pages.press(pages.form(pages.get(EDIT), end), url=url, title=HOSTILE)
        assert refused.status == 400 and message in refused.text and "<script>alert" not in refused.text
        form = pages.form(refused, end)
        assert (form.value("url"), form.value("title")) == (url, HOSTILE)
    assert [each["url"] for each in stored(pages)] == ["https://example.com/1"]


def test_a_link_that_an_earlier_version_stored(pages: PageClient, database_url: str) -> None:
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
    assert (told.status, stored(pages)) == (303, [])
    pages.undo(told)
    page = pages.get("/ui/flags/a").text
    assert "javascript:alert(1)" in page and 'href="javascript' not in page


def test_changing_and_removing_one(pages: PageClient) -> None:
    """Address and title change, an empty title takes it away; undo sets each back. Saving what is there is no change."""
    identity = add(pages, title="T")
    told = pages.press(form_of(pages, identity), url="https://example.com/2", title="U")
    assert "You changed the link https://example.com/2 of a" in pages.get(told.headers["location"]).text
    pages.undo(told)
    assert [(each["id"], each["url"], each["title"]) for each in stored(pages)] == [
        (identity, "https://example.com/1", "T")
    ]
    assert pages.press(form_of(pages, identity), url="https://example.com/2", title="U").status == 303
    assert "Nothing was different" in pages.get(pages.press(form_of(pages, identity)).headers["location"]).text
    assert pages.press(form_of(pages, identity), title="").status == 303
    assert [(each["url"], each["title"]) for each in stored(pages)] == [("https://example.com/2", None)]
    form = form_of(pages, identity)
    told = pages.post(f"{form.action}/remove", form.fields)
    assert "You removed the link https://example.com/2 of a" in pages.get(told.headers["location"]).text
    assert stored(pages) == []
    pages.undo(told)
    assert [each["id"] for each in stored(pages)] == [identity]


def test_two_people(pages: PageClient) -> None:
    """Who saves or removes a link that someone changed meanwhile is told, and changes nothing."""
    identity = add(pages)
    mine = form_of(pages, identity)
    assert pages.press(form_of(pages, identity), title="theirs").status == 303
    conflict = pages.press(mine, title="mine")
    assert conflict.status == 409 and "someone changed this link" in conflict.text and "`mine`" in conflict.text
    assert pages.form(conflict, f"/links/{identity}").value("title") == "theirs"
    assert pages.post(f"{mine.action}/remove", mine.fields).status == 409
    assert [each["title"] for each in stored(pages)] == ["theirs"]
    form = form_of(pages, identity)
    assert pages.post(f"{form.action}/remove", form.fields).status == 303
    assert pages.press(form, title="late").status == 409 and stored(pages) == []


def test_too_many(pages: PageClient) -> None:
    """A flag has at most ten links."""
    for number in range(10):
        add(pages, f"https://example.com/{number}")
    refused = pages.press(pages.form(pages.get(EDIT), "/links"), url="https://example.com/more")
    assert refused.status == 403 and "Too many links (10)" in refused.text and len(stored(pages)) == 10
