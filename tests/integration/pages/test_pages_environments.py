"""Environments on pages: list, order, make, change, switch, delete; two people; rights."""

from __future__ import annotations

from typing import Any

from support.page_forms import HOSTILE, PageClient

API = "/api/admin/environments"


def stored(pages: PageClient) -> dict[str, dict[str, Any]]:
    """Return the environments as the admin API shows them, in order."""
    return {each["name"]: each for each in pages.client.get(API).json()["environments"]}


def make(pages: PageClient, name: str, **more: Any) -> Any:
    """Make an environment with the form."""
    form = pages.form(pages.get("/ui/new-environment"), "/new-environment")
    typed: dict[str, Any] = {"name": name, "type": "test", **more}
    return pages.press(form, "", **typed)


def test_making_one(pages: PageClient) -> None:
    """The form makes an environment that the list shows with its numbers; no text of it becomes HTML."""
    made = make(pages, "new", type=HOSTILE)
    assert made.status == 303 and made.headers["location"].startswith("/ui/environments?undo=")
    assert "You created" in pages.get(made.headers["location"]).text
    page = pages.get("/ui/environments").text
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert pages.data("/ui/environments")["environments"] == list(stored(pages).values())
    assert make(pages, "off", enabled=None).status == 303
    assert [stored(pages)[name]["enabled"] for name in ("new", "off")] == [True, False]
    assert pages.get("/ui/environments/new").status == 200
    assert pages.get("/ui/environments/nosuch").status == 404


def test_the_projects_of_a_new_one(pages: PageClient) -> None:
    """The ticked projects get it in the same transaction, which one undo takes back; a refused form keeps what is ticked."""
    for name in ("other", "third"):
        pages.client.post("/api/admin/projects", {"id": name, "name": name})
    form = pages.form(pages.get("/ui/new-environment"), "/new-environment")
    assert [value for name, value in form.fields if name == "projects"] == ["default", "other", "third"]
    refused = make(pages, "development", projects=["other"])
    assert refused.status == 409
    assert [value for name, value in pages.form(refused, "/new-environment").fields if name == "projects"] == ["other"]
    assert make(pages, "new", projects=["nosuch"]).status == 404 and "new" not in stored(pages)
    made = make(pages, "new", projects=["default", "other"])
    shown = {name: pages.data(f"/ui/projects/{name}")["environments"] for name in ("default", "other", "third")}
    assert [name for name, each in shown.items() if "new" in [one["name"] for one in each]] == ["default", "other"]
    pages.undo(made)
    assert "new" not in stored(pages)


def test_on_and_off(pages: PageClient) -> None:
    """The button switches to the other state."""
    for end, enabled in (("off", False), ("on", True)):
        form = pages.form(pages.get("/ui/environments/development"), f"/{end}")
        told = pages.press(form)
        assert "You changed" in pages.get(told.headers["location"]).text
        assert stored(pages)["development"]["enabled"] is enabled
    assert pages.post("/ui/environments/nosuch/on").status == 404


def test_the_order(pages: PageClient) -> None:
    """The buttons move an environment by one place; a list that is old moves nothing."""
    make(pages, "one")
    make(pages, "two")
    first = list(stored(pages))
    form = pages.form(pages.get("/ui/environments"), "/two/up")
    assert pages.press(form).status == 303
    moved = [*first[:-2], "two", "one"]
    assert list(stored(pages)) == moved
    old = pages.press(form)
    assert old.status == 409 and "someone changed the order" in old.text
    base = pages.form(pages.get("/ui/environments"), "/two/up").value("base")
    assert pages.post(f"/ui/environments/{moved[0]}/up", [("base", base)]).status == 303
    assert list(stored(pages)) == moved
    assert pages.post("/ui/environments/two/down", [("base", base)]).status == 303
    assert list(stored(pages)) == first
    assert pages.post("/ui/environments/nosuch/down", [("base", base)]).status == 404


def test_deleting(pages: PageClient) -> None:
    """An environment in use stays, and the page has every reason; one that is not in use is deleted."""
    refused = pages.press(pages.form(pages.get("/ui/environments/development"), "/delete"))
    assert refused.status == 409
    assert "in use and cannot be deleted" in refused.text and "project `default` has it" in refused.text
    make(pages, "new", projects=None)
    form = pages.form(pages.get("/ui/environments/new"), "/delete")
    pages.client.post(f"{API}/new/off", None)
    assert pages.press(form).status == 409
    told = pages.press(pages.form(pages.get("/ui/environments/new"), "/delete"))
    assert "You deleted" in pages.get(told.headers["location"]).text
    assert "new" not in stored(pages)
