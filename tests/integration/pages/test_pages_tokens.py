"""API tokens on pages: the list, making one, whose secret is shown once, deleting, and who may do it."""

from __future__ import annotations

from typing import Any

import pytest

from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient, read_secret, require_kept
from support.processes import Answer

API = "/api/admin/api-tokens"
OWNER_SECRET = "user:secret-of-an-owner"
GIVEN: dict[str, Any] = {
    "users": [{"name": "owner", "rootRole": "viewer", "projectRoles": [{"project": "other", "role": "owner"}]}],
    "tokens": [{"type": "personal", "user": "owner", "secret": OWNER_SECRET}],
    "projects": [{"id": "other", "name": HOSTILE}],
}


def make(pages: PageClient, name: str, *, token: str = USER_SECRET, project: str = "", **more: Any) -> Answer:
    """Make a token by the form: of all projects, or of one."""
    path = f"/ui/tokens/new/{project}".rstrip("/")
    form = pages.form(pages.get(path, token=USER_SECRET), path)
    return pages.press(form, "save", token=token, name=name, **more)


def stored(pages: PageClient) -> dict[str, dict[str, Any]]:
    """Return the tokens as the admin API lists them, by name."""
    return {each["tokenName"]: each for each in pages.client.get(API).json()["tokens"]}


def number_of(pages: PageClient, name: str) -> int:
    """Return the id of a token."""
    return next(int(each["id"]) for each in pages.data("/ui/tokens")["tokens"] if each["tokenName"] == name)


def test_the_secret_is_shown_once(pages: PageClient) -> None:
    """The answer of the form has the secret, which works; no later page, no event, no address and no log line has it."""
    made = make(pages, HOSTILE, environment="production", projects=["default", "other"], expires="2999-01-31")
    secret = read_secret(made)
    assert "<script>alert" not in made.text
    assert "flagsvc proxy --url http://" in made.text and "--client-keys some-key" in made.text
    assert pages.client.get("/api/client/features", token=secret).status == 200
    token = stored(pages)[HOSTILE]
    assert (token["environment"], token["projects"], token["type"]) == ("production", ["default", "other"], "client")
    assert token["expiresAt"] == "2999-01-31T23:59:59.000Z"
    require_kept(pages, secret, "/ui/tokens", "/ui/tokens.json")


def test_a_frontend_token(pages: PageClient) -> None:
    """It is of all projects unless others are ticked. It is for a proxy, so the page shows an address of one, and the key."""
    made = make(pages, "web", type="frontend")
    assert "https://PROXY/api/frontend" in made.text and "flagsvc proxy --url" not in made.text
    assert read_secret(made).startswith("*:development.")
    assert stored(pages)["web"]["expiresAt"] is None


def test_the_list(pages: PageClient) -> None:
    """It has every token that the caller may read, never a secret or a part of one, and no text of it becomes HTML."""
    make(pages, HOSTILE)
    page = pages.get("/ui/tokens").text
    assert "<script>alert" not in page and "***" not in page and "***" not in pages.get("/ui/tokens.json").text
    assert BACKEND_SECRET not in page and ADMIN_SECRET not in page
    kinds = {secret: types(pages, secret) for secret in (USER_SECRET, EDITOR_SECRET, VIEWER_SECRET, OWNER_SECRET)}
    assert kinds[USER_SECRET] == ["admin", "client", "frontend", "client"]
    assert kinds[EDITOR_SECRET] == ["client", "frontend", "client"]
    assert kinds[VIEWER_SECRET] == kinds[OWNER_SECRET] == []
    assert "needs the permission READ_CLIENT_API_TOKEN" in pages.get("/ui/tokens", token=VIEWER_SECRET).text
    assert make(pages, "theirs", project="other").status == 200
    assert types(pages, OWNER_SECRET) == ["client"]


def types(pages: PageClient, secret: str) -> list[str]:
    """Return the types of the tokens that a caller sees."""
    return [each["type"] for each in pages.data("/ui/tokens", token=secret)["tokens"]]


@pytest.mark.parametrize(
    ("secret", "project", "status"), [(EDITOR_SECRET, "", 403), (OWNER_SECRET, "other", 200), (OWNER_SECRET, "default", 403)]
)
def test_who_may_make_and_delete_one(pages: PageClient, secret: str, project: str, status: int) -> None:
    """A root role or a role in the project decides. What is not allowed is shown disabled, with its permission."""
    path = f"/ui/tokens/new/{project}".rstrip("/")
    shown = pages.get(path, token=secret)
    assert ("that needs the permission" in shown.text) is (status == 403)
    assert make(pages, "mine", token=secret, project=project).status == status
    if status == 403:
        make(pages, "mine", project=project)
    place = f"/ui/tokens/{number_of(pages, 'mine')}/delete" + (f"/{project}" if project else "")
    assert (f'action="{place}"' in pages.get("/ui/tokens", token=secret).text) is (status == 200)
    assert pages.post(place, token=secret).status == (303 if status == 200 else 403)
    assert ("mine" in stored(pages)) is (status == 403)


def test_deleting_one(pages: PageClient) -> None:
    """A deleted token is refused at once; a token of several projects is not deleted by the right in one of them."""
    secret = read_secret(make(pages, "mine", projects=["default", "other"]))
    number = number_of(pages, "mine")
    assert pages.post(f"/ui/tokens/{number}/delete/other", token=OWNER_SECRET).status == 400
    form = pages.form(pages.get("/ui/tokens"), f"/{number}/delete")
    done = pages.press(form)
    assert done.status == 303
    assert "You deleted the API token mine." in pages.get(done.headers["location"]).text
    assert pages.client.get("/api/client/features", token=secret).status == 401
    for path in (f"{number}/delete", "99999999999/delete", f"{number}/delete/other"):
        assert pages.post(f"/ui/tokens/{path}").status == 404
    assert pages.post("/ui/tokens/x/delete").status == 400
    assert pages.get("/ui/tokens/new/nosuch").status == 404


def test_changing_the_expiry(pages: PageClient) -> None:
    """A token gets a last day, and is refused after it; the notice says why no undo is offered; the same day changes nothing."""
    secret = read_secret(make(pages, HOSTILE))
    own = f"/tokens/{number_of(pages, HOSTILE)}"
    page = pages.get(f"/ui{own}")
    assert "<script>alert" not in page.text and "***" not in page.text and "***" not in pages.get(f"/ui{own}.json").text
    assert f'href="/ui{own}"' in pages.get("/ui/tokens").text
    form = pages.form(page, own)
    assert form.value("expires") == ""
    done = pages.press(form, "save", expires="2999-01-31")
    told = pages.get(done.headers["location"]).text
    assert "You changed the API token" in told and "change when it expires on its page" in told
    assert stored(pages)[HOSTILE]["expiresAt"] == "2999-01-31T23:59:59.000Z"
    pages.client.put(f"{API}/{stored(pages)[HOSTILE]['secret']}", {"expiresAt": "2999-02-01T12:00:00Z"})
    form = pages.form(pages.get(f"/ui{own}"), own)
    same = pages.press(form, "save")
    assert "Nothing was different" in pages.get(same.headers["location"]).text
    assert stored(pages)[HOSTILE]["expiresAt"] == "2999-02-01T12:00:00.000Z"
    assert pages.client.get("/api/client/features", token=secret).status == 200
    assert pages.press(form, "save", expires="2001-01-31").status == 303
    assert pages.client.get("/api/client/features", token=secret).status == 401


@pytest.mark.parametrize(("secret", "reads"), [(OWNER_SECRET, True), (VIEWER_SECRET, False)])
def test_who_may_change_an_expiry(pages: PageClient, secret: str, reads: bool) -> None:
    """Who may read a token sees it; only the right of the API changes it, and the page names that right."""
    make(pages, "mine", project="other")
    own = f"/ui/tokens/{number_of(pages, 'mine')}"
    page = pages.get(own, token=secret)
    assert page.status == (200 if reads else 404)
    assert ("needs the permission UPDATE_CLIENT_API_TOKEN" in page.text) is reads
    fields = [("base", pages.data(own)["base"]), ("expires", "2999-01-31")]
    assert pages.post(own, fields, token=secret).status == 403
    for path, status in (("99999999999", 404), ("x", 400)):
        assert pages.get(f"/ui/tokens/{path}").status == status
