"""Projects on pages: list, make, change, environments, members, delete; two people; rights of each role."""

from __future__ import annotations

from typing import Any

import pytest

from support.flagservers import EDITOR_SECRET
from support.page_forms import HOSTILE, PageClient

API = "/api/admin/projects"
OWNER_SECRET, MEMBER_SECRET = "user:secret-of-an-owner", "user:secret-of-a-member"
GIVEN: dict[str, Any] = {
    "users": [
        {"name": name, "rootRole": "viewer", "projectRoles": [{"project": "shop", "role": role}]}
        for name, role in (("an-owner", "owner"), ("a-member", "member"))
    ]
    + [{"name": HOSTILE, "rootRole": "viewer"}],
    "tokens": [
        {"type": "personal", "user": "an-owner", "secret": OWNER_SECRET},
        {"type": "personal", "user": "a-member", "secret": MEMBER_SECRET},
    ],
    "projects": [{"id": "shop", "name": HOSTILE, "description": HOSTILE}],
    "features": [{"name": "a"}],
}


def overview(pages: PageClient, project: str) -> Any:
    """Return a project as the admin API shows it."""
    return pages.client.get(f"{API}/{project}/overview").json()


def roles(pages: PageClient) -> dict[str, list[int]]:
    """Return the roles of the members of a project, by name."""
    found = pages.client.get(f"{API}/shop/access").json()["users"]
    return {each["name"]: each["roles"] for each in found}


def number_of(pages: PageClient, name: str) -> str:
    """Return the id of a user."""
    found = pages.client.get("/api/admin/user-admin/access").json()["users"]
    return next(str(each["id"]) for each in found if each.get("name") == name)


def test_the_list(pages: PageClient) -> None:
    """Each project has its numbers and a link to its flags; no text of it becomes HTML."""
    page = pages.get("/ui/projects").text
    assert 'href="/ui/flags?project=shop"' in page and "<script>alert" not in page and "&lt;script&gt;" in page
    found = {each["id"]: (each["featureCount"], each["memberCount"]) for each in pages.data("/ui/projects")["projects"]}
    assert found["shop"] == (0, 2) and found["default"][0] == 1
    assert "<script>alert" not in pages.get("/ui/projects/shop").text
    assert pages.get("/ui/projects/nosuch").status == 404


def test_making_one(pages: PageClient) -> None:
    """The form makes a project with the ticked environments; without an id one is made from the name."""
    form = pages.form(pages.get("/ui/new-project"), "/new-project")
    made = pages.press(form, name="The new", description=HOSTILE, environments=["production"])
    assert made.status == 303 and made.headers["location"].startswith("/ui/projects/the-new?undo=")
    assert "You created" in pages.get(made.headers["location"]).text
    assert overview(pages, "the-new")["environments"] == [{"environment": "production"}]
    assert pages.press(form, name="New", id="new").status == 303
    assert len(overview(pages, "new")["environments"]) == 2 and overview(pages, "new")["description"] is None
    again = pages.form(pages.press(form, name="New", id="new", environments=None), "/new-project")
    assert "environments" not in dict(again.fields)


def test_the_settings(pages: PageClient) -> None:
    """Mode, limit and stickiness are changed as the API does it; an empty limit is none, and 0 is a limit."""
    own = "/projects/shop"
    form = pages.form(pages.get(f"/ui{own}"), own)
    assert [form.value(name) for name in ("mode", "defaultStickiness", "featureLimit")] == ["open", "default", ""]
    typed = {"mode": "protected", "defaultStickiness": "userId"}
    told = pages.press(form, "save", **typed, featureLimit="2")
    assert "You changed the project shop" in pages.get(told.headers["location"]).text
    assert typed.items() <= overview(pages, "shop").items() and overview(pages, "shop")["featureLimit"] == 2
    for limit, stored in (("0", 0), ("", None)):
        form = pages.form(pages.get(f"/ui{own}"), own)
        assert form.value("mode") == "protected"
        assert pages.press(form, "save", featureLimit=limit).status == 303
        assert overview(pages, "shop")["featureLimit"] == stored
        assert pages.data(f"/ui{own}")["form"]["featureLimit"] == limit


def test_a_stickiness_of_a_context_field(pages: PageClient) -> None:
    """Fields that rollouts may stick to are offered, and so is the field of the project."""
    pages.client.post("/api/admin/context", {"name": "tenant", "stickiness": True})
    assert '<option value="tenant">tenant</option>' in pages.get("/ui/projects/shop").text
    pages.client.put(f"{API}/shop", {"defaultStickiness": "gone"})
    page = pages.get("/ui/projects/shop")
    assert '<option value="gone" selected>gone</option>' in page.text


def test_the_naming_pattern(pages: PageClient) -> None:
    """A pattern is set with its example and description, counts for new flags, and an empty one is none."""
    naming = {"pattern": "[a-z]+-[0-9]+", "example": "shop-1", "description": HOSTILE}
    page = pages.get("/ui/projects/shop")
    assert pages.press(pages.form(page, "/naming"), "save", **naming).status == 303
    assert overview(pages, "shop")["featureNaming"] == naming
    page = pages.get("/ui/projects/shop")
    form = pages.form(page, "/naming")
    assert "<script>alert" not in page.text and {name: form.value(name) for name in naming} == naming
    assert pages.press(form, "save", pattern="", example="", description="").status == 303
    assert overview(pages, "shop")["featureNaming"] == dict.fromkeys(naming)


def test_environments(pages: PageClient) -> None:
    """An environment is removed and added. An environment whose flags changed since it was shown stays."""
    path = "/environments/development/remove"
    old = pages.form(pages.get("/ui/projects/default"), path)
    pages.client.post(f"{API}/default/features/a/environments/development/on", None)
    assert pages.press(old).status == 409
    assert pages.press(pages.form(pages.get("/ui/projects/default"), path)).status == 303
    assert overview(pages, "default")["environments"] == [{"environment": "production"}]
    add = pages.form(pages.get("/ui/projects/default"), "/environments")
    assert pages.press(add).status == 303
    assert len(overview(pages, "default")["environments"]) == 2
    refused = pages.press(add)
    assert refused.status == 409 and "already has the environment" in refused.text
    assert pages.press(add, environment="nosuch").status == 400


def test_members(pages: PageClient) -> None:
    """Roles are given, changed and taken; roles that changed since they were shown stay."""
    number = number_of(pages, HOSTILE)
    page = pages.get("/ui/projects/shop")
    assert pages.press(pages.form(page, "/access"), user=number, role="5").status == 303
    assert roles(pages) == {"an-owner": [4], "a-member": [5], HOSTILE: [5]}
    page = pages.get("/ui/projects/shop")
    assert "<script>alert" not in page.text
    change, take = pages.form(page, f"/users/{number}/roles"), f"/ui/projects/shop/users/{number}/remove"
    assert pages.press(change, roles=["4", "5"]).status == 303
    assert roles(pages)[HOSTILE] == [4, 5]
    assert pages.press(change, roles=None).status == 409
    assert pages.post(take, [("base", change.value("base"))]).status == 409
    new = pages.form(pages.get("/ui/projects/shop"), f"/users/{number}/roles")
    assert pages.press(new, roles=["4"]).status == 303
    new = pages.form(pages.get("/ui/projects/shop"), f"/users/{number}/roles")
    assert pages.post(take, [("base", new.value("base"))]).status == 303
    assert HOSTILE not in roles(pages)
    give = pages.form(pages.get("/ui/projects/shop"), "/access")
    for user, status in (("", 400), ("99999", 404)):
        assert pages.press(give, user=user, role="5").status == status


def test_deleting(pages: PageClient) -> None:
    """A project with flags stays, with the reason; a project without flags is deleted."""
    pages.client.post(f"{API}/shop/features", {"name": "b"})
    base = pages.data("/ui/projects/shop")["whole_base"]
    refused = pages.post("/ui/projects/shop/delete", [("base", base)])
    assert refused.status == 403 and "active feature flags" in refused.text
    pages.client.delete(f"{API}/shop/features/b")
    told = pages.press(pages.form(pages.get("/ui/projects/shop"), "/delete"))
    assert told.status == 303 and "You deleted" in pages.get(told.headers["location"]).text
    assert pages.get("/ui/projects/shop").status == 404


@pytest.mark.parametrize(
    ("secret", "makes", "changes"),
    [(EDITOR_SECRET, True, ["default"]), (MEMBER_SECRET, False, []), (OWNER_SECRET, False, ["shop"])],
)
def test_who_may(pages: PageClient, secret: str, makes: bool, changes: list[str]) -> None:
    """As in the API, the role decides; who may not change a project sees no members and what is needed."""
    made = pages.post("/ui/new-project", [("name", "mine")], token=secret)
    assert made.status == (303 if makes else 403)
    assert ("/ui/new-project" in pages.get("/ui/projects", token=secret).text) is makes
    for project in ("default", "shop"):
        own, allowed = f"/ui/projects/{project}", project in changes
        page = pages.get(own, token=secret)
        assert page.status == 200 and ("UPDATE_PROJECT" in page.text) is not allowed
        data = pages.data(own, token=secret)
        assert ("an-owner" in str(data["members"])) is (allowed and project == "shop")
        assert bool(data["others"]) is allowed
        fields = [*(data["form"] | {"name": "changed"}).items(), ("base", data["base"])]
        assert pages.post(own, fields, token=secret).status == (303 if allowed else 403)
        ends = ("naming", "environments", "environments/development/remove", "access", "users/1/roles", "users/1/remove", "delete")
        for end in ends:
            answer = pages.post(f"{own}/{end}", [], token=secret)
            assert (answer.status == 403) is not allowed, end
