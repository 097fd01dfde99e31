"""Making a flag, changing it, tags, archiving and reviving: by forms alone, with the rights of the API."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.api.route import Auth, Route
from flagsvc.server.api.routes import ROUTES
from flagsvc.server.application import PAGE_ROUTES
from support.flagservers import VIEWER_SECRET
from support.page_forms import PageClient

FEATURES = "/api/admin/projects/default/features"
HOSTILE = "<script>alert(1)</script>\"'&"
GIVEN: dict[str, Any] = {"projects": [{"id": "other", "name": HOSTILE}], "features": [{"name": "a"}]}
FORMS = [route for route in PAGE_ROUTES if route.method == "POST" and route.auth is Auth.PAGE and not route.reads]
OF_ONES_OWN = {"createPat", "deletePat", "endSession", "endSessions"}
CHECKED_INSIDE = {"importToggles", "undoEvent", "undoAction"}
NO_PERMISSION_OF_THE_ROUTE = OF_ONES_OWN | CHECKED_INSIDE
"""What every user may do with the user's own tokens and sessions; and operations whose permissions the store
checks, by what they do."""


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.path)
def test_forms_have_the_rights_of_the_api(route: Route) -> None:
    """Each form that changes something names the operation of the admin API that it does, whose permission it needs."""
    operations = {each.operation: each for each in ROUTES}
    assert route.stands_for in operations
    operation = operations[route.stands_for]
    assert route.permission or route.stands_for in NO_PERMISSION_OF_THE_ROUTE
    assert operation.method != "GET" and not operation.reads
    if "projectId" in operation.path and "projectId" not in route.path:
        assert route.project_of is not None
    for parameter in (":environment", ":strategyId", ":featureName"):
        assert parameter not in operation.path or parameter in route.path


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


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [("a", 409, "already exists"), ("no name", 400, "URL friendly"), ("", 400, "not allowed to be empty")],
)
def test_a_name_that_no_flag_can_have(pages: PageClient, name: str, status: int, message: str) -> None:
    """The error is at the form, and what was typed is kept."""
    form = pages.form(pages.get("/ui/projects/default/new-flag"), "/new-flag")
    refused = pages.press(form, "save", name=name, description=HOSTILE)
    assert refused.status == status and message in refused.text
    form = pages.form(refused, "/new-flag")
    assert (form.value("name"), form.value("description")) == (name, HOSTILE)


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
    """Tags come and go by buttons; one that no tag can be is refused at the form."""
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


def test_a_parent_is_not_archived(pages: PageClient) -> None:
    """A flag on which others depend is not archived, and the page says why."""
    pages.client.post(FEATURES, {"name": "child"})
    pages.client.post(f"{FEATURES}/child/dependencies", {"feature": "a"})
    refused = pages.press(pages.form(pages.get("/ui/flags/a/edit"), "/archive"))
    assert refused.status == 403 and "other features depend on it" in refused.text


def test_what_a_viewer_sees(pages: PageClient) -> None:
    """A viewer sees the forms with no button that works, and what permission is missing."""
    for path, permission in (("/ui/new-flag", "CREATE_FEATURE"), ("/ui/flags/a/edit", "UPDATE_FEATURE")):
        page = pages.get(path, token=VIEWER_SECRET)
        assert permission in page.text
        assert pages.form(page).buttons == []
    for path in ("projects/default/new-flag", "flags/a/edit", "flags/a/tags", "flags/a/archive", "flags/a/revive"):
        assert pages.post(f"/ui/{path}", [("name", "x")], token=VIEWER_SECRET).status == 403


def test_data(pages: PageClient) -> None:
    """The same addresses with `.json` give the data of the pages."""
    assert pages.data("/ui/flags/a/edit")["form"]["type"] == "release"
    assert [each["value"] for each in pages.data("/ui/new-flag")["projects"]] == ["other", "default"]
