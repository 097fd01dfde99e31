"""Strategy types on pages: list, make, change, parameters, deprecate, delete; two people; rights."""

from __future__ import annotations

from typing import Any

from support.page_forms import HOSTILE, PageClient

API = "/api/admin/strategies"
HOURS = "/ui/strategy-types/hours"
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}],
    "strategyTypes": [{"name": "hours", "description": HOSTILE, "parameters": [{"name": "from", "type": "number"}]}],
    "strategies": [{"feature": "a", "environment": "development", "name": "hours"}],
}


def stored(pages: PageClient, name: str = "hours") -> Any:
    """Return a strategy type as the admin API shows it."""
    return pages.client.get(f"{API}/{name}").json()


def test_making_one(pages: PageClient) -> None:
    """The form makes a type with its parameters; no text of a type becomes HTML."""
    form = pages.form(pages.get("/ui/new-strategy-type"), "/new-strategy-type")
    form = pages.form(pages.press(form, "add-parameter", name="days", title="Days"), "/new-strategy-type")
    form = pages.form(pages.press(form, "add-parameter", p0__name="from", p0__type="number"), "/new-strategy-type")
    typed = {"p0__required": "on", "p1__name": "to", "p1__type": "list", "p1__description": HOSTILE}
    made = pages.press(form, "save", **typed)
    assert made.status == 303 and "You created the strategy type days" in pages.get(made.headers["location"]).text
    found = stored(pages, "days")
    assert (found["title"], found["description"], found["editable"]) == ("Days", None, True)
    assert found["parameters"] == [
        {"name": "from", "type": "number", "required": True},
        {"name": "to", "type": "list", "description": HOSTILE},
    ]
    page = pages.get("/ui/strategy-types").text + pages.get("/ui/strategy-types/days").text
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert pages.data("/ui/strategy-types")["types"] == pages.client.get(API).json()["strategies"]
    assert pages.get("/ui/strategy-types/nosuch").status == 404


def test_changing_one(pages: PageClient) -> None:
    """Parameters change and go; saving what is there is no change."""
    form = pages.form(pages.get(HOURS), "/hours")
    assert "Nothing was different" in pages.get(pages.press(form, "save").headers["location"]).text
    told = pages.press(form, "save", p0__required="on")
    assert "You changed the strategy type hours" in pages.get(told.headers["location"]).text
    assert stored(pages)["parameters"] == [{"name": "from", "type": "number", "required": True}]
    form = pages.form(pages.press(pages.form(pages.get(HOURS), "/hours"), "remove-parameter:0"), "/hours")
    assert "Someone else" not in pages.press(form, "look").text and pages.press(form, "save").status == 303
    assert stored(pages)["parameters"] == [] and stored(pages)["description"] == HOSTILE


def test_deprecating(pages: PageClient) -> None:
    """A type is deprecated, and then not offered for new strategies, and reactivated; so is a built-in one."""
    new = "/ui/flags/a/development/strategies/new"
    assert "hours" in pages.data(new)["choices"]["types"]
    for name in ("hours", "flexibleRollout"):
        place = f"/ui/strategy-types/{name}"
        told = pages.press(pages.form(pages.get(place), "/deprecate"))
        assert "You deprecated" in pages.get(told.headers["location"]).text and stored(pages, name)["deprecated"]
        assert name not in pages.data(new)["choices"]["types"]
        assert pages.press(pages.form(pages.get(place), "/reactivate")).status == 303
        assert not stored(pages, name)["deprecated"]
    form = pages.form(pages.get(HOURS), "/deprecate")
    pages.client.ask("PUT", f"{API}/hours", {"parameters": []})
    assert pages.press(form).status == 409 and not stored(pages)["deprecated"]


def test_deleting(pages: PageClient) -> None:
    """The page names the flags that use the type, which keep their strategies, and undo brings it back; a built-in type stays."""
    page = pages.get(HOURS)
    assert 'href="/ui/flags/a"' in page.text and "stays as it is, and clients get it as before" in page.text
    told = pages.press(pages.form(page, "/delete"))
    assert "You deleted the strategy type hours" in pages.get(told.headers["location"]).text
    assert pages.get(HOURS).status == 404
    pages.undo(told)
    assert stored(pages)["parameters"] == [{"name": "from", "type": "number"}]
    place = "/api/admin/projects/default/features/a/environments/development/strategies"
    assert [each["name"] for each in pages.client.get(place).json()] == ["hours"]
    built_in = pages.get("/ui/strategy-types/default")
    base = pages.form(built_in, "/deprecate").value("base")
    assert "cannot be deleted" in built_in.text
    assert pages.post("/ui/strategy-types/default/delete", [("base", base)]).status == 403
    assert pages.post("/ui/strategy-types/default", [("base", base), ("do", "save")]).status == 403
