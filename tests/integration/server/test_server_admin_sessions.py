"""`…/user/sessions`, `…/user-admin/:id/sessions` and `…/sign-in-link`: who may see and end sessions, and make links."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from flagsvc.server.store.keyring import IDLE_S
from flagsvc.server.store.resources import sessions
from flagsvc.testing import FakeClock
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient
from support.page_scene import Visitor, pass_time

OWN = "/api/admin/user/sessions"
USERS = "/api/admin/user-admin"
READER = 3


@pytest.fixture
def clock() -> FakeClock:
    """Give the time of the server."""
    return FakeClock()


def listed(client: AppClient, path: str = OWN, token: str = USER_SECRET) -> list[dict[str, Any]]:
    """Return the sessions of a path."""
    found: list[dict[str, Any]] = client.get(path, token=token).json()["sessions"]
    return found


def test_a_user_lists_and_ends_sessions(client: AppClient) -> None:
    """Each has its times and what opened it, and no secret; the newest comes first. Ended ones open no page any more."""
    first, second = Visitor(client, VIEWER_SECRET), Visitor(client, None)
    made = client.post(f"{USERS}/{READER}/sign-in-link").json()
    assert second.sign_in(made["path"].partition("#")[2]).status == 303
    found = listed(client, token=VIEWER_SECRET)
    assert [each["tokenName"] for each in found] == [None, "reader"]
    assert not any(each["current"] for each in found) and all(each["seenAt"] for each in found)
    assert client.delete(f"{OWN}/{found[1]['id']}", token=VIEWER_SECRET).status == 200
    assert first.see("/flags").status == 303 and second.see("/flags").status == 200
    assert client.delete(OWN, token=VIEWER_SECRET).status == 200
    assert second.see("/flags").status == 303 and listed(client, token=VIEWER_SECRET) == []


def test_sessions_of_others(client: AppClient) -> None:
    """A user ends no session of another one; an administrator may, and no other token may look."""
    visitor = Visitor(client, VIEWER_SECRET)
    path = f"{USERS}/{READER}/sessions"
    [found] = listed(client, path)
    assert client.delete(f"{OWN}/{found['id']}").status == 404
    assert client.delete(f"{USERS}/1/sessions/{found['id']}").status == 404
    for token in (EDITOR_SECRET, VIEWER_SECRET):
        answers = [client.get(path, token=token), client.delete(path, token=token)]
        answers += [client.delete(f"{path}/{found['id']}", token=token)]
        answers += [client.post(f"{USERS}/{READER}/sign-in-link", token=token)]
        assert [each.status for each in answers] == [403] * 4
    assert visitor.see("/flags").status == 200
    assert client.delete(f"{path}/{found['id']}", token=ADMIN_SECRET).status == 200
    assert visitor.see("/flags").status == 303
    assert client.get(f"{USERS}/99/sessions").status == 404 and client.delete(f"{USERS}/99/sessions").status == 404


def test_an_admin_token_has_no_sessions(client: AppClient) -> None:
    """It is no user."""
    assert client.get(OWN, token=ADMIN_SECRET).status == 403 and client.delete(OWN, token=ADMIN_SECRET).status == 403


def test_ended_sessions_are_not_listed(client: AppClient, clock: FakeClock) -> None:
    """A session that was not used for long is gone, also before a cleanup."""
    Visitor(client)
    assert len(listed(client)) == 1
    pass_time(clock, IDLE_S + timedelta(minutes=6).total_seconds())
    assert listed(client) == []


def test_a_sign_in_link(client: AppClient, clock: FakeClock) -> None:
    """It signs its user in once, within 15 minutes; a later link voids it, and no cache keeps the answer."""
    path = f"{USERS}/{READER}/sign-in-link"
    answer = client.post(path)
    assert (answer.status, answer.headers["cache-control"]) == (201, "no-store")
    old, code = answer.json()["path"].partition("#")[2], client.post(path).json()["path"].partition("#")[2]
    assert Visitor(client, None).sign_in(old).status == 403
    visitor = Visitor(client, None)
    assert visitor.sign_in(code).status == 303 and "reader (viewer)" in visitor.see("/flags").text
    assert visitor.sign_in(code).status == 403
    late = client.post(path).json()["path"].partition("#")[2]
    pass_time(clock, sessions.LINK_TIME.total_seconds() + 1)
    assert Visitor(client, None).sign_in(late).status == 403
    assert client.post(f"{USERS}/99/sign-in-link").status == 404


def test_what_is_told(client: AppClient) -> None:
    """Links and ended sessions are events without a code; ending none is no event."""
    code = client.post(f"{USERS}/{READER}/sign-in-link").json()["path"].partition("#")[2]
    client.delete(f"{USERS}/{READER}/sessions")
    Visitor(client, VIEWER_SECRET)
    client.delete(f"{USERS}/{READER}/sessions")
    text = client.get("/api/admin/events").text
    found = client.get("/api/admin/events").json()["events"]
    assert [each["type"] for each in found] == ["user-sessions-ended", "user-link-created"]
    assert found[0]["before"]["sessions"] == 1 and found[0]["before"]["username"] == "reader"
    assert code not in text and code not in str(client.log.lines)


def test_names_of_users(client: AppClient) -> None:
    """Every user may read them, to give roles in a project."""
    found = client.get(f"{USERS}/access", token=VIEWER_SECRET).json()
    assert [each["username"] for each in found["users"]] == ["boss", "writer", "reader"]
    assert found["groups"] == [] and "rootRole" not in found["users"][0]
