"""Tag types on pages: list, make, change, color, delete with the tags; two people; rights."""

from __future__ import annotations

from typing import Any

from support.page_forms import HOSTILE, PageClient

API = "/api/admin/tag-types"
TEAM = "/ui/tag-types/team"
GIVEN: dict[str, Any] = {"features": [{"name": "a"}], "tagTypes": [{"name": "team", "description": HOSTILE}]}


def prepare(pages: PageClient) -> None:
    """Tag a flag."""
    assert pages.client.post("/api/admin/features/a/tags", {"type": "team", "value": "web"}).status == 201


def stored(pages: PageClient, name: str = "team") -> Any:
    """Return a tag type as the admin API shows it."""
    return pages.client.get(f"{API}/{name}").json()["tagType"]


def test_making_one(pages: PageClient) -> None:
    """The form makes a type, with a color only where the box is ticked; no text of a type becomes HTML."""
    form = pages.form(pages.get("/ui/new-tag-type"), "/new-tag-type")
    made = pages.press(form, name="squad", description="d", color="#123abc")
    assert made.status == 303 and "You created the tag type squad" in pages.get(made.headers["location"]).text
    assert stored(pages, "squad") == {"name": "squad", "description": "d", "icon": None, "color": None}
    assert pages.press(form, name="other", color="#123abc", colored="on").status == 303
    assert stored(pages, "other")["color"] == "#123abc"
    page = pages.get("/ui/tag-types").text
    assert "<script>alert" not in page and "&lt;script&gt;" in page and 'fill="#123abc"' in page
    numbers = {each["name"]: each["tags"] for each in pages.data("/ui/tag-types")["types"]}
    assert (numbers["team"], numbers["squad"]) == (1, 0)
    assert pages.get("/ui/tag-types/nosuch").status == 404


def test_the_icon(pages: PageClient) -> None:
    """A type is made with an icon; the list shows it, as text only."""
    form = pages.form(pages.get("/ui/new-tag-type"), "/new-tag-type")
    assert pages.press(form, name="squad", icon=HOSTILE).status == 303
    assert stored(pages, "squad")["icon"] == HOSTILE
    listed = pages.get("/ui/tag-types").text
    assert "<script>alert" not in listed and '<td data-label="icon">&lt;script&gt;' in listed


def test_changing_one(pages: PageClient) -> None:
    """Description and color change. Saving what is there is no change."""
    form = pages.form(pages.get(TEAM), "/team")
    assert "Nothing was different" in pages.get(pages.press(form).headers["location"]).text
    told = pages.press(form, description="theirs", colored="on", color="#000000")
    assert "You changed the tag type team" in pages.get(told.headers["location"]).text
    assert stored(pages) == {"name": "team", "description": "theirs", "icon": None, "color": "#000000"}


def test_deleting(pages: PageClient) -> None:
    """The page says which flags lose which tags; a tag that came meanwhile is not deleted unseen. Undo brings all back."""
    page = pages.get(TEAM)
    assert "Its 1 tag is deleted, too, and taken off 1 flag." in page.text and 'href="/ui/flags/a"' in page.text
    form = pages.form(page, "/delete")
    pages.client.post("/api/admin/tags", {"type": "team", "value": "new"})
    assert pages.press(form).status == 409
    told = pages.press(pages.form(pages.get(TEAM), "/delete"))
    assert "You deleted the tag type team" in pages.get(told.headers["location"]).text
    assert pages.client.get("/api/admin/features/a/tags").json()["tags"] == []
    assert pages.get(TEAM).status == 404
    pages.undo(told)
    assert [each["value"] for each in pages.client.get("/api/admin/features/a/tags").json()["tags"]] == ["web"]
