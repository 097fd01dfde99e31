"""What a flag depends on, on pages: both ways in words, choosing, changing and removing a parent; the rules; two people; rights."""

from __future__ import annotations

from typing import Any

from support.page_forms import PageClient

FEATURES = "/api/admin/projects/default/features"
CHILD = "/ui/flags/child/parent"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": "Other"}],
    "features": [
        *({"name": name} for name in ("child", "mother", "father", "grandchild")),
        {"name": "away", "project": "other"},
        {"name": "old", "archived": True},
    ],
}


def prepare(pages: PageClient) -> None:
    """Give a flag a variant."""
    variant = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}
    place = f"{FEATURES}/mother/environments/development/strategies"
    assert pages.client.post(place, {"name": "default", "variants": [variant]}).status == 200


def parents(pages: PageClient, flag: str = "child") -> Any:
    """Return what a flag depends on, as the admin API shows it."""
    return pages.client.get(f"{FEATURES}/{flag}").json()["dependencies"]


def choose(pages: PageClient, parent: str, **typed: Any) -> Any:
    """Choose a parent with the form."""
    return pages.press(pages.form(pages.get(f"{CHILD}?parent={parent}"), "/parent"), **typed)


def test_choosing_one(pages: PageClient) -> None:
    """A parent is on, on with a variant, or off. The page of each of the two flags says so."""
    assert "Depends on no flag." in pages.get("/ui/flags/child").text
    assert pages.data(CHILD)["offered"] == ["father", "grandchild", "mother"]
    told = choose(pages, "mother")
    page = pages.get(told.headers["location"]).text
    assert "You made child depend on mother." in page
    assert 'Depends on <a href="/ui/flags/mother"><bdi>mother</bdi></a>, which must be on.' in page
    assert '1 flag depends on it: <a href="/ui/flags/child"><bdi>child</bdi></a>.' in pages.get("/ui/flags/mother").text
    assert choose(pages, "mother", variants=["blue"]).status == 303
    assert parents(pages) == [{"feature": "mother", "enabled": True, "variants": ["blue"]}]
    assert "which must be on with variant blue" in pages.get("/ui/flags/child").text
    assert "Nothing was different" in pages.get(choose(pages, "mother").headers["location"]).text
    assert choose(pages, "mother", state="off").status == 303
    assert parents(pages) == [{"feature": "mother", "enabled": False, "variants": []}]
    assert "which must be off" in pages.get("/ui/flags/child").text


def test_another_one_replaces_it(pages: PageClient) -> None:
    """The form replaces the parent of a flag, and says so. Removing the parent leaves none; undo sets each back."""
    choose(pages, "mother")
    assert "It replaces what child depends on now." in pages.get(f"{CHILD}?parent=father").text
    assert "It replaces" not in pages.get(CHILD).text
    told = choose(pages, "father")
    assert [each["feature"] for each in parents(pages)] == ["father"]
    pages.undo(told)
    assert [each["feature"] for each in parents(pages)] == ["mother"]
    assert choose(pages, "father").status == 303
    told = pages.press(pages.form(pages.get(CHILD), "/father/remove"))
    assert "You removed the parent father of child." in pages.get(told.headers["location"]).text
    assert parents(pages) == []
    pages.undo(told)
    assert [each["feature"] for each in parents(pages)] == ["father"]


def test_what_can_be_no_parent(pages: PageClient) -> None:
    """A flag that cannot be the parent is refused with the reason, at the form, which has what was typed."""
    refused = choose(pages, "away", state="off")
    assert refused.status == 403 and "The parent is in another project." in refused.text
    assert pages.form(refused, "/parent").value("parent") == "away"
    assert parents(pages) == []


def test_a_parent_has_no_parent(pages: PageClient) -> None:
    """A flag on which others depend can have no parent: its page names them, and offers no form."""
    pages.client.post(f"{FEATURES}/grandchild/dependencies", {"feature": "child"})
    page = pages.get(CHILD).text
    assert "1 flag depends on it, so it can have no parent itself" in page and ">grandchild</a>" in page
    assert "Take this parent" not in page
    base = pages.data(CHILD)["base"]
    refused = pages.post(CHILD, [("base", base), ("parent", "mother"), ("state", "on")])
    assert refused.status == 403 and "Other flags depend on this flag" in refused.text


def test_two_people(pages: PageClient) -> None:
    """The second sees what the first chose, and decides; a parent that changed meanwhile is not removed unseen."""
    mine = pages.form(pages.get(f"{CHILD}?parent=mother"), "/parent")
    choose(pages, "father")
    gone = pages.form(pages.get(CHILD), "/father/remove")
    conflict = pages.press(mine, variants=["blue"])
    assert conflict.status == 409 and "father, which must be on" in conflict.text
    assert "mother, which must be on with variant blue" in conflict.text
    assert [each["feature"] for each in parents(pages)] == ["father"]
    assert pages.press(pages.form(conflict, "/parent"), "save").status == 303
    assert parents(pages) == [{"feature": "mother", "enabled": True, "variants": ["blue"]}]
    assert pages.press(gone).status == 409 and len(parents(pages)) == 1
