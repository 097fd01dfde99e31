"""What is one's own on pages: personal tokens and sessions."""

from __future__ import annotations

import pytest

from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET
from support.page_forms import PageClient, read_secret, require_kept
from support.page_scene import Visitor

HOSTILE = "<script>alert(1)</script>\"'&"


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


@pytest.mark.parametrize(
    ("description", "expires", "status", "message"),
    [
        ("", "2999-01-01", 400, "cannot be empty"),
        (HOSTILE, "", 400, "date-time"),
        (HOSTILE, "2001-01-01", 400, "should be in future"),
    ],
)
def test_what_no_personal_token_can_have(
    pages: PageClient, description: str, expires: str, status: int, message: str
) -> None:
    """The form comes again with the message and what was typed."""
    refused = pages.post("/ui/my-tokens", [("description", description), ("expires", expires)])
    assert refused.status == status and message in refused.text and "<script>alert" not in refused.text
    form = pages.form(refused, "/my-tokens")
    assert (form.value("description"), form.value("expires")) == (description, expires)


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
    """They end with it, and the list names the token."""
    form = pages.form(pages.get("/ui/my-tokens"), "/my-tokens")
    secret = read_secret(pages.press(form, description=HOSTILE))
    visitor = Visitor(pages.client, secret)
    page = visitor.see("/sessions")
    assert "<script>alert" not in page.text
    assert visitor.data("/sessions")["sessions"][0]["tokenName"] == HOSTILE
    number = next(each["id"] for each in pages.data("/ui/my-tokens")["tokens"] if each["description"] == HOSTILE)
    assert visitor.send(f"/my-tokens/{number}/delete").status == 303
    assert visitor.see("/sessions").status == 303
