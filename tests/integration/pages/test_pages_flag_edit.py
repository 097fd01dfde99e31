"""Making a flag, changing it, tags, archiving and reviving: by forms alone, with the rights of the API."""

from __future__ import annotations

from typing import Any

from support.page_forms import PageClient

FEATURES = "/api/admin/projects/default/features"
HOSTILE = "<script>alert(1)</script>\"'&"
GIVEN: dict[str, Any] = {"projects": [{"id": "other", "name": HOSTILE}], "features": [{"name": "a"}]}


def test_making_a_flag(pages: PageClient) -> None:
    """A flag is made in the chosen project, and is off everywhere."""
    page = pages.get("/ui/new-flag?project=other")
    assert "<script>alert" not in page.text
    form = pages.form(page, "/projects/other/new-flag")
    made = pages.press(form, "save", name="mine", description=HOSTILE, type="experiment", impressionData="on")
    assert made.status == 303 and made.headers["location"].startswith("/ui/flags/mine?undo=")
    flag = pages.client.get("/api/admin/projects/other/features/mine").json()
    assert (flag["description"], flag["type"], flag["impressionData"]) == (HOSTILE, "experiment", True)
    assert not any(each["enabled"] for each in flag["environments"])
    assert "You created the flag mine in " in pages.get(made.headers["location"]).text


def test_a_name_that_no_flag_can_have(pages: PageClient) -> None:
    """The error is at the form, and what was typed is kept."""
    form = pages.form(pages.get("/ui/projects/default/new-flag"), "/new-flag")
    refused = pages.press(form, "save", name="a", description=HOSTILE)
    assert refused.status == 409 and "already exists" in refused.text
    form = pages.form(refused, "/new-flag")
    assert (form.value("name"), form.value("description")) == ("a", HOSTILE)


def test_changing_a_flag(pages: PageClient) -> None:
    """Description, type, stale and impression data change; the second of two people is told what the first did."""
    mine, theirs = (pages.form(pages.get("/ui/flags/a/edit"), "/edit") for _ in range(2))
    assert pages.press(theirs, "save", description="theirs", stale="on").status == 303
    conflict = pages.press(mine, "save", description="mine", type="kill-switch")
    assert conflict.status == 409
    assert '<td data-label="theirs">theirs</td><td data-label="yours">mine</td>' in conflict.text
    assert pages.press(pages.form(conflict, "/edit"), "save").status == 303
    flag = pages.client.get(f"{FEATURES}/a").json()
    assert (flag["description"], flag["type"], flag["stale"]) == ("mine", "kill-switch", False)
    assert pages.get("/ui/flags/nosuch/edit").status == 404


def test_tags(pages: PageClient) -> None:
    """Tags come and go by buttons. A value that no tag can have is refused at the form."""
    form = pages.form(pages.get("/ui/flags/a/edit"), "/tags")
    assert pages.press(form, "add", value="a:b&c").status == 303
    tags = pages.client.get("/api/admin/features/a/tags").json()["tags"]
    assert [(each["type"], each["value"]) for each in tags] == [("simple", "a:b&c")]
    refused = pages.press(form, "add", value="x")
    assert refused.status == 400
    form = pages.form(pages.get("/ui/flags/a/edit"), "/tags")
    assert pages.press(form, "remove:simple:a:b&c").status == 303
    assert pages.client.get("/api/admin/features/a/tags").json()["tags"] == []


def test_archiving_and_reviving(pages: PageClient) -> None:
    """An archived flag has a page with a button that revives it, off everywhere."""
    pages.client.post(f"{FEATURES}/a/environments/development/on")
    gone = pages.press(pages.form(pages.get("/ui/flags/a/edit"), "/archive"))
    assert gone.status == 303 and gone.headers["location"].startswith("/ui/flags/a/archived?undo=")
    assert pages.get("/ui/flags/a").headers["location"] == "/ui/flags/a/archived"
    page = pages.get("/ui/flags/a/archived")
    assert pages.press(pages.form(page, "/revive")).headers["location"].startswith("/ui/flags/a?undo=")
    assert not pages.client.get(f"{FEATURES}/a/environments/development").json()["enabled"]
    assert pages.get("/ui/flags/a/archived").status == 303
