"""Segments on pages: list, make, change, delete; where they are used; two people; rights in one project."""

from __future__ import annotations

from typing import Any

from support.flagservers import EDITOR_SECRET, VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient

API = "/api/admin/segments"
STRATEGIES = "/api/admin/projects/default/features/a/environments/development/strategies"
OWNER_SECRET = "user:secret-of-an-owner"
GIVEN: dict[str, Any] = {
    "users": [{"name": "owner", "rootRole": "viewer", "projectRoles": [{"project": "other", "role": "owner"}]}],
    "tokens": [{"type": "personal", "user": "owner", "secret": OWNER_SECRET}],
    "projects": [{"id": "other", "name": "O"}],
    "features": [{"name": "a"}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}],
}


def stored(pages: PageClient) -> list[dict[str, Any]]:
    """Return the segments as the admin API shows them."""
    return list(pages.client.get(API).json()["segments"])


def test_the_list(pages: PageClient) -> None:
    """Each segment has its words; no text of it becomes HTML."""
    pages.client.post(API, {"name": HOSTILE, "description": HOSTILE, "constraints": []})
    page = pages.get("/ui/segments").text
    assert "region is eu" in page and "<script>alert" not in page
    assert [(each["name"], each["words"]) for each in pages.data("/ui/segments")["segments"]] == [
        (HOSTILE, "everyone"),
        ("beta", "region is eu"),
    ]


def test_making_one(pages: PageClient) -> None:
    """A segment is made with conditions; what is typed stays through the buttons, and the words are shown before."""
    first = pages.press(pages.form(pages.get("/ui/segments/new"), "/new"), "add-condition", name="mine", description="d")
    second = pages.press(pages.form(first, "/new"), "preview", c0__field="plan", c0__values="team\nfree")
    assert "plan is one of team, free" in second.text
    saved = pages.press(pages.form(second, "/new"), "save")
    assert saved.status == 303 and saved.headers["location"].startswith("/ui/segments?undo=")
    [made] = [each for each in stored(pages) if each["name"] == "mine"]
    assert (made["description"], made["constraints"][0]["values"]) == ("d", ["team", "free"])


def test_where_it_is_used(pages: PageClient) -> None:
    """The page links to the strategies that use a segment; it is deleted only when none does."""
    strategy = pages.client.post(STRATEGIES, {"name": "flexibleRollout", "segments": [1]}).json()
    page = pages.get("/ui/segments/1")
    assert f'href="/ui/flags/a/development/strategies/{strategy["id"]}"' in page.text
    base = pages.form(page, "/1").value("base")
    refused = pages.post("/ui/segments/1/delete", [("base", base)])
    assert refused.status == 409 and "strategies use it" in refused.text
    pages.client.delete(f"{STRATEGIES}/{strategy['id']}")
    assert pages.press(pages.form(pages.get("/ui/segments/1"), "/delete")).status == 303
    assert stored(pages) == []
    for path in ("1", "99999999999999", "0"):
        assert pages.get(f"/ui/segments/{path}").status == 404
    assert pages.get("/ui/segments/x").status == 400


def test_the_owner_of_a_project_makes_one_for_it(pages: PageClient) -> None:
    """The form offers exactly the projects for which its user may make and change a segment; without any it is disabled."""
    assert 'href="/ui/segments/new"' in pages.get("/ui/segments", token=OWNER_SECRET).text
    form = pages.form(pages.get("/ui/segments/new", token=OWNER_SECRET), "/new")
    assert form.value("project") == "other"
    assert pages.press(form, "save", token=OWNER_SECRET, name="ours", project="").status == 403
    assert pages.press(form, "save", token=OWNER_SECRET, name="ours").status == 303
    number = next(each["id"] for each in stored(pages) if each["name"] == "ours")
    form = pages.form(pages.get(f"/ui/segments/{number}"), f"/{number}")
    assert pages.press(form, "save", token=OWNER_SECRET, description="changed").status == 303
    data = pages.data("/ui/segments/new", token=VIEWER_SECRET)
    assert (data["may"], data["choices"]["projects"]) == (False, [])
    assert pages.data("/ui/segments/new", token=EDITOR_SECRET)["for_all"] is True
