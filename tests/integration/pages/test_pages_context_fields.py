"""Context fields on pages: list, make, change, legal values, delete; two people; rights of each role."""

from __future__ import annotations

from typing import Any

from support.flagservers import EDITOR_SECRET
from support.page_forms import HOSTILE, PageClient

API = "/api/admin/context"
OWNER_SECRET = "user:secret-of-an-owner"
PLAN = "/ui/context-fields/plan"
GIVEN: dict[str, Any] = {
    "users": [{"name": "owner", "rootRole": "viewer", "projectRoles": [{"project": "shop", "role": "owner"}]}],
    "tokens": [{"type": "personal", "user": "owner", "secret": OWNER_SECRET}],
    "projects": [{"id": "shop", "name": "Shop"}],
    "features": [{"name": "a"}],
    "contextFields": [
        {"name": "plan", "description": HOSTILE, "legalValues": [{"value": "gold"}, {"value": "silver"}]},
        {"name": "region", "project": "shop"},
    ],
    "segments": [{"name": "beta", "constraints": [{"contextName": "plan", "operator": "IN", "values": ["gold"]}]}],
}


def stored(pages: PageClient, name: str = "plan") -> Any:
    """Return a context field as the admin API shows it."""
    return pages.client.get(f"{API}/{name}").json()


def constrain(pages: PageClient) -> None:
    """Add a strategy that constrains the plan."""
    place = "/api/admin/projects/default/features/a/environments/development/strategies"
    constraint = {"contextName": "plan", "operator": "IN", "values": ["gold"]}
    assert pages.client.post(place, {"name": "default", "constraints": [constraint]}).status == 200


def test_the_list(pages: PageClient) -> None:
    """Each field has its legal values, and the number of flags; no text of it becomes HTML."""
    constrain(pages)
    page = pages.get("/ui/context-fields").text
    assert "<script>alert" not in page and "&lt;script&gt;" in page and "gold, silver" in page
    assert pages.data("/ui/context-fields")["fields"] == pages.client.get(API).json()
    assert "<script>alert" not in pages.get(PLAN).text
    assert pages.get("/ui/context-fields/nosuch").status == 404


def test_making_one(pages: PageClient) -> None:
    """The form makes a field with the values that are pasted into it."""
    form = pages.form(pages.get("/ui/new-context-field"), "/new-context-field")
    page = pages.press(form, "add-values", name="tier", more='one\n"a, b"\none', description=HOSTILE, stickiness="on")
    form = pages.form(page, "/new-context-field")
    assert [each for name, each in form.fields if name == "value"] == ["one", "a, b"]
    made = pages.press(form, "save", meaning=["The first", ""], more="three")
    assert made.status == 303 and "You created the context field tier" in pages.get(made.headers["location"]).text
    values = [{"value": "one", "description": "The first"}, {"value": "a, b"}, {"value": "three"}]
    found = stored(pages, "tier")
    assert (found["legalValues"], found["description"], found["stickiness"]) == (values, HOSTILE, True)
    assert "project" not in found
    assert pages.press(form, "save", name="bare", description="", value=None, meaning=None).status == 303
    assert (stored(pages, "bare")["description"], stored(pages, "bare")["legalValues"]) == (None, [])


def test_changing_one(pages: PageClient) -> None:
    """A value is taken out, one gets a description; undo brings both back. Saving what is there is no change."""
    before = stored(pages)
    form = pages.form(pages.get(PLAN), "/plan")
    assert "Nothing was different" in pages.get(pages.press(form, "save").headers["location"]).text
    form = pages.form(pages.press(form, "remove-value:0"), "/plan")
    assert len(stored(pages)["legalValues"]) == 2
    told = pages.press(form, "save", meaning=["Second"], stickiness="on", description="")
    assert "You changed the context field plan" in pages.get(told.headers["location"]).text
    found = stored(pages)
    assert found["legalValues"] == [{"value": "silver", "description": "Second"}]
    assert (found["stickiness"], found["description"]) == (True, "")
    pages.undo(told)
    assert stored(pages) == before


def test_deleting(pages: PageClient) -> None:
    """A field that a strategy constrains stays, and the page names the flag; the segments that constrain it stay unchanged."""
    constrain(pages)
    page = pages.get(PLAN)
    base = pages.form(page, "/plan").value("base")
    assert "Strategies constrain it." in page.text and 'href="/ui/flags/a"' in page.text and ">beta</a>" in page.text
    refused = pages.post(f"{PLAN}/delete", [("base", base)])
    assert refused.status == 409 and "in use by existing flags" in refused.text
    pages.client.ask("DELETE", "/api/admin/projects/default/features/a", None)
    form = pages.form(pages.get(PLAN), "/delete")
    pages.client.post(f"{API}/plan/legal-values", {"value": "new"})
    assert pages.press(form).status == 409
    told = pages.press(pages.form(pages.get(PLAN), "/delete"))
    assert "You deleted the context field plan" in pages.get(told.headers["location"]).text
    assert stored(pages)["name"] == "NotFoundError"


def test_rights_in_a_project(pages: PageClient) -> None:
    """The owner of a project makes, changes and deletes its fields, and moves none to another project; an editor may all."""
    form = pages.form(pages.get("/ui/new-context-field", token=OWNER_SECRET), "/new-context-field")
    assert form.value("project") == "shop"
    assert pages.press(form, "save", token=OWNER_SECRET, name="mine", project="").status == 403
    assert pages.press(form, "save", token=OWNER_SECRET, name="mine").status == 303
    form = pages.form(pages.get("/ui/context-fields/region", token=OWNER_SECRET), "/region")
    assert pages.press(form, "save", token=OWNER_SECRET, project="default").status == 403
    assert pages.press(form, "save", token=OWNER_SECRET, description="ours").status == 303
    assert (stored(pages, "region")["description"], stored(pages, "region")["project"]) == ("ours", "shop")
    form = pages.form(pages.get("/ui/context-fields/region", token=OWNER_SECRET), "/delete")
    assert pages.press(form, token=OWNER_SECRET).status == 303
    form = pages.form(pages.get(PLAN, token=EDITOR_SECRET), "/plan")
    assert pages.press(form, "save", token=EDITOR_SECRET, description="new").status == 303
