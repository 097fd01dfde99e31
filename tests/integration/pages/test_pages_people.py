"""People on pages: the list, making a user, changing one, sign-in links, sessions, deleting; for administrators only.

What is one's own on pages: personal tokens and sessions.
"""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.resources import identities, users
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient, Visitor, read_secret, require_kept

API = "/api/admin/user-admin"
GIVEN: dict[str, Any] = {
    "users": [{"name": "owner", "rootRole": "viewer", "projectRoles": [{"project": "default", "role": "owner"}]}]
}


def stored(pages: PageClient) -> dict[str, dict[str, Any]]:
    """Return the users as the admin API lists them, by username."""
    return {each["username"]: each for each in pages.client.get(API).json()["users"]}


def place_of(pages: PageClient, name: str) -> str:
    """Return the address of the page of a user."""
    return f"/ui/people/{stored(pages)[name]['id']}"


def make(pages: PageClient, access: str, **fields: str) -> str:
    """Make a user by the form, and return what it shows once."""
    form = pages.form(pages.get("/ui/people/new"), "/people/new")
    made = pages.press(form, access=access, **fields)
    assert "<script>alert" not in made.text
    return read_secret(made)


def test_a_new_user_signs_in_with_a_link(pages: PageClient) -> None:
    """The link is shown once and works once; nothing else has its code."""
    link = make(pages, "link", username="anna", name=HOSTILE, email="Anna@example.com", rootRole="Editor")
    address, _, code = link.partition("#")
    assert address.startswith("http://") and address.endswith("/ui/sign-in")
    require_kept(pages, code, "/ui/people", place_of(pages, "anna"), f"{place_of(pages, 'anna')}.json")
    anna = stored(pages)["anna"]
    assert (anna["name"], anna["email"], anna["rootRole"]) == (HOSTILE, "anna@example.com", 2)
    visitor = Visitor(pages.client, code)
    assert "(editor)" in visitor.see("/flags").text
    assert Visitor(pages.client, None).sign_in(code).status == 403
    for path in ("/ui/people", place_of(pages, "anna"), "/ui/history"):
        assert "<script>alert" not in pages.get(path).text


def test_a_new_user_with_a_token(pages: PageClient) -> None:
    """The token is the user's, is shown once, and has the user's rights."""
    secret = make(pages, "token", username="anna", rootRole="Viewer")
    require_kept(pages, secret, "/ui/people", place_of(pages, "anna"))
    assert pages.get("/ui/people", token=secret).status == 403
    assert [each["description"] for each in pages.data("/ui/my-tokens", token=secret)["tokens"]] == ["first token"]


def test_changing_one(pages: PageClient) -> None:
    """Name and role change; a user who changed meanwhile is not deleted unseen; the last administrator stays one."""
    place = place_of(pages, "writer")
    form, mine = pages.form(pages.get(place), place), pages.form(pages.get(place), "/delete")
    done = pages.press(form, "save", name="new", rootRole="Viewer")
    assert done.status == 303 and done.headers["location"].startswith(f"{place}?undo=")
    assert (stored(pages)["writer"]["name"], stored(pages)["writer"]["rootRole"]) == ("new", 3)
    deletion = pages.press(mine)
    assert deletion.status == 409 and "was not deleted" in deletion.text
    assert pages.press(pages.form(pages.get(place_of(pages, "boss")), "/delete")).status == 403


def test_sessions_and_links(pages: PageClient) -> None:
    """An administrator sees the sessions of a user, ends one or all, and makes a link that is shown once."""
    place = place_of(pages, "reader")
    visitors = [Visitor(pages.client, VIEWER_SECRET) for _ in range(3)]
    number = pages.data(place)["sessions"][0]["id"]
    done = pages.press(pages.form(pages.get(place), f"/sessions/{number}/end"))
    assert done.status == 303
    assert "You ended sessions of the user reader." in pages.get(done.headers["location"]).text
    assert [each.see("/flags").status for each in visitors] == [200, 200, 303]
    assert pages.post(f"{place_of(pages, 'writer')}/sessions/{number}/end").status == 404
    assert pages.press(pages.form(pages.get(place), "/sessions/end")).status == 303
    assert [each.see("/flags").status for each in visitors] == [303, 303, 303]
    code = read_secret(pages.press(pages.form(pages.get(place), "/sign-in-link"))).partition("#")[2]
    require_kept(pages, code, place, f"{place}.json")
    assert Visitor(pages.client, code).see("/flags").status == 200


def test_accounts_elsewhere(pages: PageClient) -> None:
    """The page shows each account that the user is linked to, and unlinks one."""
    place = place_of(pages, "reader")
    assert "linked to no account" in pages.get(place).text
    with pages.client.server.store.writing(None) as tx:
        identities.link(tx, users.find(tx, stored(pages)["reader"]["id"]), "https://id.example", HOSTILE)
    page = pages.get(place)
    assert "https://id.example" in page.text and "<script>alert" not in page.text and "is linked to the user" in page.text
    done = pages.press(pages.form(page, "/unlink"))
    assert done.status == 303
    assert "You unlinked the user reader from an account elsewhere." in pages.get(done.headers["location"]).text
    assert pages.data(place)["accounts"] == []


def test_deleting_one(pages: PageClient) -> None:
    """The page says what ends with the user; then the tokens and sessions are refused."""
    visitor = Visitor(pages.client, VIEWER_SECRET)
    page = pages.get(place_of(pages, "reader"))
    assert "With the user end: 1 session, the personal token" in page.text
    assert "owner in default" in pages.get(place_of(pages, "owner")).text
    done = pages.press(pages.form(page, "/delete"))
    assert done.status == 303 and "You deleted the user reader." in pages.get(done.headers["location"]).text
    assert visitor.see("/flags").status == 303
    assert pages.get("/ui/flags", token=VIEWER_SECRET).status == 401
    assert "reader" not in stored(pages)


def test_ids_that_no_user_has(pages: PageClient) -> None:
    """An id that no user has is 404; a text that is no id is 400."""
    for number, status in (("0", 404), ("99999999999", 404), ("x", 400)):
        assert pages.get(f"/ui/people/{number}").status == status
        for form in ("sign-in-link", "sessions/end", "delete"):
            assert pages.post(f"/ui/people/{number}/{form}").status == status


@pytest.mark.parametrize("secret", [USER_SECRET, EDITOR_SECRET, VIEWER_SECRET])
def test_a_personal_token(pages: PageClient, secret: str) -> None:
    """Every user makes one, sees its secret once, and deletes it; it works until then and others do not see it."""
    form = pages.form(pages.get("/ui/my-tokens", token=secret), "/my-tokens")
    made = pages.press(form, token=secret, description=HOSTILE)
    new = read_secret(made)
    assert "<script>alert" not in made.text
    page = pages.get("/ui/my-tokens", token=new)
    assert "<script>alert" not in page.text and new not in page.text
    require_kept(pages, new, "/ui/tokens", "/ui/my-tokens.json")
    mine = pages.data("/ui/my-tokens", token=secret)["tokens"]
    number = next(each["id"] for each in mine if each["description"] == HOSTILE)
    other = EDITOR_SECRET if secret != EDITOR_SECRET else USER_SECRET
    assert pages.post(f"/ui/my-tokens/{number}/delete", token=other).status == 404
    done = pages.press(pages.form(page, f"/{number}/delete"), token=secret)
    assert done.status == 303
    assert "You deleted the personal token" in pages.get(done.headers["location"], token=secret).text
    assert pages.get("/ui/my-tokens", token=new).status == 401


def test_an_admin_token_has_nothing_of_its_own(pages: PageClient) -> None:
    """It is no user."""
    for path in ("/ui/my-tokens", "/ui/sessions"):
        assert pages.get(path, token=ADMIN_SECRET).status == 403
    assert "/ui/my-tokens" not in pages.get("/ui/tokens", token=ADMIN_SECRET).text
    assert pages.post("/ui/sessions/end", token=ADMIN_SECRET).status == 403


def test_sessions(pages: PageClient) -> None:
    """The list marks the current one. One ends, all others end; the current one and those of others stay."""
    first, second, third = (Visitor(pages.client) for _ in range(3))
    foreign = Visitor(pages.client, VIEWER_SECRET)
    found = first.data("/sessions")["sessions"]
    assert [each["current"] for each in found] == [False, False, True]
    assert "this session" in first.see("/sessions").text
    theirs = foreign.data("/sessions")["sessions"][0]["id"]
    assert first.send(f"/sessions/{theirs}/end").status == 404
    done = first.send(f"/sessions/{found[1]['id']}/end")
    assert done.status == 303
    assert "You ended sessions of the user boss." in first.see(done.headers["location"].removeprefix("/ui")).text
    assert [each.see("/sessions").status for each in (first, second, third, foreign)] == [200, 303, 200, 200]
    done = first.send("/sessions/end")
    assert done.status == 303
    assert [each.see("/sessions").status for each in (first, third, foreign)] == [200, 303, 200]
    assert first.cookie is not None and first.cookie.partition("=")[2] not in first.see("/sessions").text


def test_the_sessions_of_a_deleted_token(pages: PageClient) -> None:
    """They end with it, and no others do; the list names the token."""
    form = pages.form(pages.get("/ui/my-tokens"), "/my-tokens")
    secret = read_secret(pages.press(form, description=HOSTILE))
    other, visitor = Visitor(pages.client), Visitor(pages.client, secret)
    page = visitor.see("/sessions")
    assert "<script>alert" not in page.text
    assert visitor.data("/sessions")["sessions"][0]["tokenName"] == HOSTILE
    number = next(each["id"] for each in pages.data("/ui/my-tokens")["tokens"] if each["description"] == HOSTILE)
    assert visitor.send(f"/my-tokens/{number}/delete").status == 303
    assert (visitor.see("/sessions").status, other.see("/sessions").status) == (303, 200)
