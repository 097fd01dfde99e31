"""Who may do what on pages: every form has the rights of the admin API, and a page names the permission that is missing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flagsvc.server.api.route import Auth, Route
from flagsvc.server.api.routes import ROUTES
from flagsvc.server.application import PAGE_ROUTES
from support.flagservers import EDITOR_SECRET, VIEWER_SECRET
from support.page_forms import PageClient, read_forms
from support.receivers import add_webhook

GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}],
    "strategies": [{"feature": "a", "environment": "development", "name": "default"}],
    "segments": [{"name": "beta", "constraints": []}],
    "contextFields": [{"name": "plan"}],
    "strategyTypes": [{"name": "hours", "parameters": []}],
    "tagTypes": [{"name": "team"}],
}
FORMS = [route for route in PAGE_ROUTES if route.method == "POST" and route.auth is Auth.PAGE and not route.reads]
OF_ONES_OWN = {"createPat", "deletePat", "endSession", "endSessions", "addFavoriteFeature", "removeFavoriteFeature"}
CHECKED_INSIDE = {"importToggles", "undoEvent", "undoAction"}
NO_PERMISSION_OF_THE_ROUTE = OF_ONES_OWN | CHECKED_INSIDE
"""What every user may do with the user's own tokens, sessions and favorites; and operations whose permissions the store
checks, by what they do."""
NEEDED = {
    "/new-flag": "CREATE_FEATURE",
    "/flags/a/edit": "UPDATE_FEATURE",
    "/flags/a/parent": "UPDATE_FEATURE_DEPENDENCY",
    "/flags/a/development/variants": "UPDATE_FEATURE_ENVIRONMENT_VARIANTS",
    "/flags/a/development/strategies/{strategy}": "needs the permission UPDATE_FEATURE_STRATEGY",
    "/projects/default": "UPDATE_PROJECT",
    "/new-environment": "ADMIN",
    "/environments/development": "ADMIN",
    "/new-context-field": "CREATE_CONTEXT_FIELD",
    "/context-fields/plan": "UPDATE_CONTEXT_FIELD",
    "/new-tag-type": "CREATE_TAG_TYPE",
    "/tag-types/team": "UPDATE_TAG_TYPE",
    "/new-strategy-type": "CREATE_STRATEGY",
    "/strategy-types/hours": "UPDATE_STRATEGY",
    "/new-webhook": "that needs the permission",
    "/webhooks/1": "that needs the permission",
    "/tokens": "needs the permission READ_CLIENT_API_TOKEN",
    "/tokens/new": "that needs the permission",
    "/people": "ADMIN",
    "/people/new": "ADMIN",
    "/people/1": "ADMIN",
}
"""Page → what it says to a viewer."""
CREATES = {
    "/flags": "Create flag",
    "/projects": "Create project",
    "/environments": "Create environment",
    "/context-fields": "Create context field",
    "/tag-types": "Create tag type",
    "/segments": "Create segment",
    "/strategy-types": "Create strategy type",
    "/webhooks": "Create webhook",
    "/tokens": "Create token",
}
"""List → what it offers to those who may, in all projects or in one."""
OWN = ("/sign-out", "/theme", "/list-view", "/favourites")
"""The ends of the addresses of forms that every person may send."""


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


def test_a_viewer_changes_nothing(pages: PageClient) -> None:
    """Each form that needs a permission is refused, with the name of the permission."""
    known = {"featureName": "a", "environment": "development", "projectId": "default"}
    before = pages.client.server.store.revision()
    for route in FORMS:
        if route.permission:
            path = re.sub(r":(\w+)", lambda found: known.get(found[1], "1"), route.path)
            refused = pages.post(path, [("name", "x"), ("do", "save")], token=VIEWER_SECRET)
            needed = (route.permission,) if isinstance(route.permission, str) else route.permission
            assert refused.status == 403 and any(each in refused.text for each in needed), path
    assert pages.client.server.store.revision() == before


def test_what_a_viewer_sees(pages: PageClient) -> None:
    """A page shows the permission that is missing, and no button that works. Who has the permission sees no such words."""
    add_webhook(pages.client, "http://127.0.0.1:1/")
    [strategy] = pages.client.get("/api/admin/projects/default/features/a/environments/development/strategies").json()
    for path, words in NEEDED.items():
        address = f"/ui{path.format(strategy=strategy['id'])}"
        page = pages.get(address, token=VIEWER_SECRET)
        assert page.status == (403 if "people" in path else 200) and words in page.text, path
        forms = [each for each in read_forms(page) if each.method == "post" and not each.action.endswith(OWN)]
        assert not any(form.buttons for form in forms), path
        assert words not in pages.get(address).text, path


def test_what_no_role_of_a_viewer_allows(pages: PageClient) -> None:
    """It is not there at all: neither the button of a list nor that of a form. What a role allows elsewhere is disabled."""
    add_webhook(pages.client, "http://127.0.0.1:1/")
    for path, words in CREATES.items():
        assert words in pages.get(f"/ui{path}").text, path
        assert words not in pages.get(f"/ui{path}", token=VIEWER_SECRET).text, path
    for path in ("/projects/default", "/tag-types/team", "/environments/development", "/webhooks/1"):
        found = pages.get(f"/ui{path}", token=VIEWER_SECRET).text.partition("<main")[2]
        assert not any(each in found for each in ("Save<", "Delete", "Remove<", "Switch o")), path
    for path in ("/flags", "/flags/a"):
        found = pages.get(f"/ui{path}", token=VIEWER_SECRET).text.partition("<main")[2]
        assert not any(each in found for each in ("disabled", 'role="switch"', ">Edit<", "Copy to", "Add a", "parent<")), path
    assert pages.client.post("/api/admin/projects", {"id": "other", "name": "other"}).status == 201
    found = pages.get("/ui/projects/other", token=EDITOR_SECRET).text
    assert 'title="needs UPDATE_PROJECT">Save</button>' in found
